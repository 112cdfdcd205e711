"""Runs without training: recorded ones of any length, and live ones at a chosen pace under a supervisor."""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from needle.config import FinetuneSettings
from needle.launch.start import start_run
from needle.runs.index import create_run
from needle.runs.record import Decision, Plan, RunFiles, RunState, Variable, write_json

PACE = """
import math, random, sys, time
from needle import report
steps, per_second = int(sys.argv[1]), float(sys.argv[2])
rng = random.Random(0)
for step in range(1, steps + 1):
    loss = 0.3 + 2.5 * math.exp(-step / 300) + rng.gauss(0, 0.05)
    report(step=step, loss=loss, lr=1e-3, step_ms=1000 / per_second, data_ms=0.2, transfer_ms=0.1,
           compute_ms=900 / per_second, tokens=step * 2048, tokens_per_s=2048 * per_second, grad_norm=1.0)
    print(f"step {step}/{steps} loss {loss:.4f}", flush=True)
    time.sleep(1 / per_second)
"""


def plan_of(command: tuple[str, ...], total_steps: int) -> Plan:
    """A plan for a command that is not a needle trainer."""
    same = Decision("cpu", "made for a benchmark")
    return Plan(
        command=command,
        command_line=("needle", "finetune", "sample"),
        interpreter=".venv",
        environment=(Variable("JAX_PLATFORMS", "cpu", "made for a benchmark"),),
        backend=same,
        kernel=Decision("xla", "made for a benchmark"),
        placement=Decision("device", "made for a benchmark"),
        precision=Decision("float32", "made for a benchmark"),
        base=Decision("sample", "made for a benchmark"),
        total_steps=total_steps,
    )


def live_run(runs: Path, *, per_second: float, steps: int = 100_000, name: str = "live") -> Path:
    """Start a run that reports at this pace until it is stopped."""
    command = (sys.executable, "-c", PACE, str(steps), str(per_second))
    return start_run("finetune", FinetuneSettings(data="sample", name=name), plan_of(command, steps), runs)


def recorded_run(runs: Path, points: int, *, name: str = "recorded", log_bytes: int = 0) -> Path:
    """Write a finished run of this many points, and a log of about this size."""
    settings = FinetuneSettings(data="sample", name=name)
    directory = create_run("finetune", settings, plan_of(("true",), points), runs)
    files = RunFiles(directory)
    with files.metrics.open("w") as metrics:
        metrics.writelines(_metric_lines(points))
    if log_bytes:
        line = "2026-12-01 12:00:00 INFO a line of a long log that nobody reads to its end\n"
        block = line * 10_000
        with files.log.open("w") as log:
            for _ in range(log_bytes // len(block) + 1):
                log.write(block)
    now = time.time()
    state = RunState(
        "finished",
        "box",
        "boot",
        started_at=now - points / 10,
        heartbeat_at=now,
        ended_at=now,
        step=points,
        total=points,
    )
    write_json(files.state, state)
    return directory


def _metric_lines(points: int) -> Iterator[str]:
    rng = random.Random(0)
    for step in range(1, points + 1):
        line = {
            "step": step,
            "time": step / 10,
            "attempt": 1,
            "loss": 0.3 + 2.5 * math.exp(-5 * step / points) + rng.gauss(0, 0.05),
            "lr": 1e-3,
            "grad_norm": 1.0,
            "step_ms": 100 + rng.random(),
            "data_ms": 0.2,
            "transfer_ms": 0.1,
            "compute_ms": 99.0,
            "tokens": step * 2048,
        }
        yield json.dumps(line) + "\n"
