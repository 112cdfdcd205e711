"""Real fine-tuning runs on tiny data, for the tests of the trainer process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from needle.config import FinetuneSettings
from needle.runs.events import Event, parse_events
from needle.runs.index import create_run
from needle.runs.record import Decision, Plan, RunFiles

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
SETTINGS = {
    "data": str(GOLDEN / "train24.jsonl"),
    "checkpoint": str(GOLDEN / "tiny.pkl"),
    "epochs": 3,
    "batch_size": 4,
    "lr": 3e-3,
    "lora_rank": 4,
    "lora_alpha": 8,
    "max_len": 512,
    "val_split": 0.25,
    "eval": False,
}
TOTAL_STEPS = 15
STEPS_PER_EPOCH = 5


def make_run(folder: Path, *, backend: str = "cpu", placement: str = "device", **changes: object) -> Path:
    """A run directory as a start would leave it, without a supervisor."""
    settings = FinetuneSettings(**{**SETTINGS, **changes})  # type: ignore[arg-type]
    why = "a test"
    plan = Plan(
        command=(sys.executable, "-m", "needle.train", "{run}"),
        command_line=("needle", "finetune"),
        interpreter="test",
        environment=(),
        backend=Decision(backend, why),
        kernel=Decision("xla", why),
        placement=Decision(placement, why),
        precision=Decision("float32", why),
        base=Decision("tiny", why),
    )
    return create_run("finetune", settings, plan, folder)


@contextmanager
def trainer(directory: Path, *, attempt: int = 1, program: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """The trainer of a run as a process, or `program`, Python that ends in it; killed if still there."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    environment |= {"NEEDLE_RUN": str(directory), "NEEDLE_ATTEMPT": str(attempt)}
    # Half the time to compile; what is computed stays the same up to rounding.
    environment["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
    start = ["-c", program] if program else ["-m", "needle.train"]
    with (directory / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *start, str(directory)], stdout=log, stderr=log, env=environment
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def train(directory: Path, *, attempt: int = 1, program: str = "") -> int:
    """Run the trainer to its end. Returns its exit status."""
    with trainer(directory, attempt=attempt, program=program) as process:
        return process.wait(timeout=240)


def request(directory: Path, name: str) -> None:
    """Leave a request where the trainer looks for it."""
    (RunFiles(directory).control / name).write_bytes(b"stop")


def metrics(directory: Path) -> list[dict[str, object]]:
    """Every whole metrics line."""
    path = RunFiles(directory).metrics
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line) for line in lines]


def losses(directory: Path) -> dict[int, object]:
    """Loss by step, a later attempt superseding an earlier one."""
    return {int(str(line["step"])): line["loss"] for line in metrics(directory) if "loss" in line}


def events(directory: Path, kind: str, attempt: int | None = None) -> list[Event]:
    """The events of a kind, of one attempt or all."""
    path = RunFiles(directory).events
    found, _ = parse_events(path.read_bytes()) if path.exists() else ([], 0)
    return [one for one in found if one["kind"] == kind and attempt in (None, one["attempt"])]


def the_end(directory: Path, attempt: int = 1) -> Event:
    """The only end event of an attempt."""
    (end,) = events(directory, "end", attempt)
    return end


def artifact_of(directory: Path) -> str:
    """The adapter it wrote last."""
    return str(RunFiles(directory).located(str(events(directory, "artifact")[-1]["path"])))


def log(directory: Path) -> str:
    return RunFiles(directory).log.read_text()
