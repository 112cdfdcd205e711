"""The run directory's costs: `python benchmarks/records.py`.

Supervisor: resident memory and CPU beside an idle trainer. Writer: microseconds a line. Reader: a run of
100,000 and of 1,000,000 lines into numpy columns, against `json.loads` a line, in the same process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil

from needle.config import FinetuneSettings
from needle.runs import RunReader, RunWriter, create_run
from needle.runs.record import Decision, Plan, RunFiles, read_state

_NOTHING = Decision("none", "a benchmark")
_TRAINER = "import time\nwhile True: time.sleep(60)"
_SLICE_BYTES = 4 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--watch-s", type=float, default=10.0, help="how long the supervisor is watched")
    arguments = parser.parse_args()
    print(f"{'what':<44}{'measured':>14}  budget or peer")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        for row in rows(Path(folder), arguments.lines, arguments.watch_s):
            print(f"{row[0]:<44}{row[1]:>14}  {row[2]}", flush=True)


def rows(folder: Path, line_counts: list[int], watch_s: float) -> Iterator[tuple[str, str, str]]:
    """One measurement after the other: what, the number, what to compare it with."""
    resident, percent = supervisor_costs(_new_run(folder), watch_s)
    yield "supervisor, resident", f"{resident / 1e6:.1f} MB", "under 25 MB"
    yield "supervisor, CPU", f"{percent:.2f} %", "of one core"
    yield (
        "writer, one metrics line",
        f"{writer_cost_us(_new_run(folder)):.1f} us",
        "0.5 % of a 10 ms step is 50 us",
    )
    for count in line_counts:
        yield from reader_rows(_new_run(folder), count)


def supervisor_costs(run: Path, watch_s: float) -> tuple[int, float]:
    """Most resident bytes and CPU percent of a supervisor whose trainer does nothing."""
    process = subprocess.Popen(
        [sys.executable, "-m", "needle.runs.supervisor", str(run)], start_new_session=True
    )
    try:
        while not RunFiles(run).system.exists():
            time.sleep(0.05)
        supervisor = psutil.Process(process.pid)
        before, began, most = supervisor.cpu_times(), time.monotonic(), 0
        while time.monotonic() - began < watch_s:
            most = max(most, supervisor.memory_info().rss)
            time.sleep(0.25)
        used = supervisor.cpu_times()
        elapsed = time.monotonic() - began
    finally:
        state = read_state(run)
        if state and state.pid:
            os.killpg(state.pid, signal.SIGKILL)
        process.wait()
    return most, 100 * (used.user + used.system - before.user - before.system) / elapsed


def writer_cost_us(run: Path, count: int = 20_000) -> float:
    """Microseconds to report one step of ten metrics."""
    writer = RunWriter(run)
    metrics = _metrics(1)
    began = time.perf_counter()
    for step in range(count):
        writer.report(step, **metrics)
    return (time.perf_counter() - began) / count * 1e6


def reader_rows(run: Path, count: int) -> Iterator[tuple[str, str, str]]:
    """Time to the first slice and to the whole, and the peer's time for the whole."""
    path = RunFiles(run).metrics
    write_lines(path, count)
    label = f"{count:,} lines ({path.stat().st_size / 1e6:.0f} MB)"
    first = _seconds(lambda: RunReader(run).poll(max_bytes=_SLICE_BYTES))
    yield f"reader, first slice of {label}", f"{first * 1000:.0f} ms", "then the screen answers again"
    whole = _seconds(lambda: _read(run, count))
    peer = _seconds(lambda: read_with_json(path))
    yield f"reader, all {label}", f"{whole:.2f} s", f"json.loads a line: {peer:.2f} s, {peer / whole:.1f} x"


def write_lines(path: Path, count: int) -> None:
    """A metrics file like a trainer's, with an evaluation line every thousand steps."""
    values = np.random.default_rng(0).random((1000, 3))
    with open(path, "w") as file:
        for step in range(1, count + 1):
            loss, lr, norm = values[step % 1000].tolist()
            metrics = {**_metrics(step), "loss": loss, "lr": lr * 1e-4, "grad_norm": norm}
            line = {"step": step, "time": round(step * 0.1819, 6), "attempt": 1, **metrics}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            if step % 1000 == 0:
                file.write(f'{{"step":{step},"time":{step * 0.1819:.6f},"attempt":1,"val_loss":{loss}}}\n')


def read_with_json(path: Path) -> dict[str, np.ndarray]:
    """What a plain reader does: a dictionary a line, then arrays."""
    columns: dict[str, list[float]] = {}
    with open(path) as file:
        for line in file:
            for name, value in json.loads(line).items():
                columns.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in columns.items()}


def _metrics(step: int) -> dict[str, float]:
    times = {"step_ms": 181.9213, "data_ms": 0.4127, "transfer_ms": 0.2034, "compute_ms": 181.2201}
    return {
        "loss": 0.4312345678,
        "lr": 9.8e-5,
        "grad_norm": 1.1234567,
        **times,
        "tokens": step * 2880,
        "tokens_per_s": 15832.1,
    }


def _read(run: Path, count: int) -> None:
    reader = RunReader(run).read_all()
    assert len(reader.metrics.series("loss")) == count, "points are missing"


def _seconds(work: Callable[[], object]) -> float:
    """The best of three, as other programs disturb rather than help."""
    best = float("inf")
    for _ in range(3):
        gc.collect()
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def _new_run(folder: Path) -> Path:
    plan = Plan(
        command=(sys.executable, "-c", _TRAINER),
        command_line=("needle",),
        interpreter=sys.executable,
        environment=(),
        backend=_NOTHING,
        kernel=_NOTHING,
        placement=_NOTHING,
        precision=_NOTHING,
        base=_NOTHING,
    )
    return create_run("finetune", FinetuneSettings(), plan, folder)


if __name__ == "__main__":
    main()
