"""What redrawing a chart costs: ours beside textual-plot and textual-plotext, in the same run.

python -m benchmarks.charts [--peers PYTHON] [--points 300 1000 5000 100000] [--seconds 3] [--repeat 3]

Each widget runs in a Textual app of its own in a real pseudo-terminal: 100x24 cells, ten updates a second, a
noisy falling curve that grows by a point each time. `--peers` names a Python that has the two peers installed
(`pip install textual-plot textual-plotext` beside the same Textual); without it their rows say so.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

CHILD = Path(__file__).with_name("chart_child.py")
ROOT = CHILD.parent.parent
PEERS = {"textual-plot": "textual_plot", "textual-plotext": "textual_plotext"}
OURS = {"ours": "ours, any Textual app", "ours-narrow": "ours, in needle-tui"}
START_S = 60


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", default=sys.executable, help="a Python that has the peers")
    parser.add_argument("--points", type=int, nargs="*", default=[300, 1000, 5000, 100_000])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, interleaved; medians are shown")
    options = parser.parse_args()
    print("| widget | points | CPU ms/frame | bytes/frame | frames drawn |\n|---|---|---|---|---|")
    for points in options.points:
        results: dict[str, list[dict[str, float]]] = {}
        for _ in range(options.repeat):
            for subject in (*OURS, *PEERS):
                python = options.peers if subject in PEERS else sys.executable
                if subject in OURS or _has(python, PEERS[subject]):
                    results.setdefault(subject, []).append(_run(python, subject, points, options.seconds))
        for subject in (*OURS, *PEERS):
            print(_row(subject, points, results.get(subject, [])), flush=True)


def _has(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def _row(subject: str, points: int, results: list[dict[str, float]]) -> str:
    name = OURS.get(subject, subject)
    if not results:
        return f"| {name} | {points:,} | not installed | | |"
    ended = [one for one in results if one]
    if not ended:
        return f"| {name} | {points:,} | did not end in time | | |"
    cpu_ms = statistics.median(1000 * one["cpu_s"] / one["frames"] for one in ended)
    sent = statistics.median(one["bytes"] / one["frames"] for one in ended)
    drawn = statistics.median(one["frames"] / one["wanted"] for one in ended)
    return f"| {name} | {points:,} | {cpu_ms:.1f} | {sent:,.0f} | {drawn:.0%} |"


def _run(python: str, subject: str, points: int, seconds: float) -> dict[str, float]:
    """One child in a pseudo-terminal whose output is read as it comes; empty when it had to be ended."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        environment = {**os.environ, **terminal, "PYTHONPATH": str(ROOT) if subject in OURS else ""}
        arguments = [python, str(CHILD), subject, str(points), str(seconds), str(result)]
        _drained(arguments, environment, seconds + START_S)
        return json.loads(result.read_text()) if result.exists() else {}


def _drained(arguments: list[str], environment: dict[str, str], limit_s: float) -> None:
    """Run a program on a terminal of its own, at most `limit_s`, and throw away what it shows."""
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
    with subprocess.Popen(
        arguments, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    ) as child:
        os.close(slave)
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    if not os.read(master, 65536):
                        break
                except OSError:
                    break
            elif child.poll() is not None:
                break
        child.kill()
    os.close(master)


if __name__ == "__main__":
    main()
