"""What the cockpit costs, in a real pseudo-terminal, beside an empty Textual app in the same run.

python -m benchmarks.cockpit [--seconds 20] [--repeat 5] [--points 10000 100000 1000000]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

from needle.runs.control import request_stop
from needle.runs.reader import open_run
from tools.synthetic import live_run, recorded_run
from tools.terminal import Terminal

EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("hello-from-an-empty-app")
Empty().run()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="how long idle and live are watched")
    parser.add_argument("--repeat", type=int, default=5, help="starts measured of each app, interleaved")
    parser.add_argument("--points", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        environment = _environment(Path(folder))
        _first_paint(environment, folder, options.repeat)
        _idle(environment, folder, options.seconds)
        for points in options.points:
            _opening(environment, folder, runs, points)
        _live(environment, folder, runs, options.seconds)


def _environment(home: Path) -> dict[str, str]:
    private = {name: str(home / name) for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME")}
    os.environ.update(private)
    return {**os.environ, **private, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}


def _cockpit(environment: dict[str, str], folder: str, *arguments: str) -> Terminal:
    return Terminal(
        [sys.executable, "-m", "needle_tui", *arguments], environment=environment, directory=folder
    )


def _first_paint(environment: dict[str, str], folder: str, repeat: int) -> None:
    """Seconds to the first readable screen, interleaved so that a busy moment hits both."""
    ours, empty = [], []
    for _ in range(repeat):
        with Terminal(
            [sys.executable, "-c", EMPTY_APP], environment=environment, directory=folder
        ) as terminal:
            empty.append(terminal.wait_for("hello-from-an-empty-app"))
        with _cockpit(environment, folder) as terminal:
            ours.append(terminal.wait_for("Launch"))
            terminal.pump(0.2)
    mine, theirs = statistics.median(ours), statistics.median(empty)
    print("| first paint (median) | seconds | ratio to empty app |\n|---|---|---|")
    print(f"| empty Textual app | {theirs:.3f} | 1.00 |")
    print(f"| needle-tui | {mine:.3f} | {mine / theirs:.2f} |\n", flush=True)


def _idle(environment: dict[str, str], folder: str, seconds: float) -> None:
    with _cockpit(environment, folder) as terminal:
        _settle(terminal)
        cpu, received = terminal.cpu_seconds(), terminal.received_bytes
        _watch(terminal, seconds)
        print("| idle on Launch | bytes/s | % of a core |\n|---|---|---|")
        _row("needle-tui", terminal, cpu, received, seconds)
        print(flush=True)


def _opening(environment: dict[str, str], folder: str, runs: Path, points: int) -> None:
    directory = recorded_run(runs, points, name=f"recorded {points}")
    with _cockpit(environment, folder, "watch", str(directory)) as terminal:
        first = terminal.wait_for("Loss", 60)
        complete = terminal.wait_for(f"{points:,} of {points:,}", 120)
        pressed = time.perf_counter()
        terminal.press("f1")
        terminal.wait_for("Keys", 30)
        answered = time.perf_counter() - pressed
        memory = psutil.Process(terminal.pid).memory_info().rss / 2**20
        cells = (f"{points:,} points", f"first screen {first:.2f} s", f"complete {complete:.2f} s")
        print("|", " | ".join((*cells, f"key {answered:.2f} s", f"{memory:.0f} MiB")), "|", flush=True)


def _live(environment: dict[str, str], folder: str, runs: Path, seconds: float) -> None:
    directory = live_run(runs, per_second=10)
    try:
        with _cockpit(environment, folder, "watch", str(directory)) as terminal:
            terminal.wait_for("running")
            _settle(terminal)
            cpu, received = terminal.cpu_seconds(), terminal.received_bytes
            lags = _watch(terminal, seconds, directory)
            print("\n| watching 10 steps/s, 120x36 | bytes/s | % of a core | steps behind, median / worst |")
            print("|---|---|---|---|")
            behind = f"{statistics.median(lags):.0f} / {max(lags)}" if lags else "-"
            _row("needle-tui", terminal, cpu, received, seconds, behind)
    finally:
        request_stop(directory, now=True)


def _settle(terminal: Terminal, quiet_s: float = 3.0) -> None:
    """Until nothing more comes, or half a minute: a live screen never falls silent."""
    deadline = time.perf_counter() + 15
    last = time.perf_counter()
    while time.perf_counter() < deadline and time.perf_counter() - last < quiet_s:
        if terminal.pump(0.1):
            last = time.perf_counter()


def _watch(terminal: Terminal, seconds: float, directory: Path | None = None) -> list[int]:
    lags, deadline = [], time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        terminal.pump(0.5)
        if directory is not None:
            shown = re.search(r"step +([\d,]+) of", terminal.text())
            if shown:
                lags.append(open_run(directory).step - int(shown.group(1).replace(",", "")))
    return lags


def _row(name: str, terminal: Terminal, cpu: float, received: int, seconds: float, more: str = "") -> None:
    rate = (terminal.received_bytes - received) / seconds
    share = 100 * (terminal.cpu_seconds() - cpu) / seconds
    print(f"| {name} | {rate:.0f} | {share:.1f} |" + (f" {more} |" if more else ""))


if __name__ == "__main__":
    main()
