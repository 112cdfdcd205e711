"""Fine-tuning on the embedded sample: `python benchmarks/finetune.py [--steps 8]`.

Three ways with the same examples, order and settings, on the CPU, a few steps each in turn:

    packed   ours: several examples to a row, one shape for the whole run
    padded   the same program on one example a row, rows as long as the next power of two
    peer     cactus-needle, where NEEDLE_PEER_PYTHON names a Python that has it and its tokenizer

Useful tokens are those of examples, without padding. On a machine with other work the processor time of a
step says more than its duration. "first loss" is from the start of a process to its first step.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax
import numpy as np
import psutil

from needle.config import FinetuneSettings
from needle.data.packing import Shape, pack
from needle.data.sample import sample_directory
from needle.launch.sample import sample_settings
from needle.model.checkpoints import load_checkpoint, save_checkpoint
from needle.model.lora import init_lora
from needle.runs.index import create_run
from needle.runs.record import Decision, Plan
from needle.runs.writer import BEGAN_VARIABLE
from needle.train.backend import configure_jax
from needle.train.batches import BatchPlan, to_batch
from needle.train.inputs import FinetuneInputs, read_inputs
from needle.train.optimizer import make_optimizer
from needle.train.program import Program, Recipe, begin_compiling, execution_of, load_program
from needle.train.step import Batch, initial_state

PEER_VARIABLE = "NEEDLE_PEER_PYTHON"
_ROOT = Path(__file__).parents[1]
_PEER = "import sys; from needle.cli import main; sys.exit(main())"
_PEER_STEP = re.compile(r"step\s+(\d+)/\d+\s+loss\s+([\d.]+)")
_PEER_LIMIT_S = 600.0


@dataclass
class Row:
    """What one way took; `None` where it was not measured, with the reason."""

    name: str
    shape: str = ""
    compile_s: float | None = None
    first_loss_s: float | None = None
    step_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    missing: str = ""

    @property
    def tokens_per_s(self) -> float:
        """Useful tokens a second over the median step."""
        return statistics.mean(self.tokens) / statistics.median(self.step_ms) * 1e3

    @property
    def tokens_per_cpu_s(self) -> float:
        return statistics.mean(self.tokens) / statistics.median(self.cpu_ms) * 1e3


class PaddedPlan(BatchPlan):
    """The same batches, one example to a row."""

    def batch(self, step: int) -> Batch:
        one_row = Shape(1, self.shape.length)
        rows = [to_batch(pack([example], one_row), self.shape.length) for example in self._members(step)]
        tokens, segments = np.zeros(self.shape, np.int32), np.zeros(self.shape, np.int32)
        targets: list[int] = []
        for number, row in enumerate(rows):
            tokens[number], segments[number] = row.tokens[0], row.segments[0]
            found = np.asarray(row.targets)
            targets.extend(int(place) + number * self.shape.length for place in found[found >= 0])
        places = np.full(self.most_targets, -1, np.int32)
        places[: len(targets)] = targets
        return Batch(tokens, segments, places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=8, help="steps measured, after two that are not")
    arguments = parser.parse_args()
    configure_jax()
    settings = replace(sample_settings(), epochs=2)
    inputs = read_inputs(settings)
    packed, padded = ours(settings, inputs, arguments.steps)
    packed.first_loss_s = first_loss_s(settings)
    print_table([packed, padded, peer(settings, inputs, arguments.steps)])


def ours(settings: FinetuneSettings, inputs: FinetuneInputs, steps: int) -> tuple[Row, Row]:
    """Packed and padded, taking turns, so that other work on the machine meets both alike."""
    batches = inputs.batches
    longest = max(len(example) for example in inputs.selected.examples)
    fields = {name: getattr(batches, name) for name in batches.__dataclass_fields__}
    shape = Shape(settings.batch_size, 1 << (longest - 1).bit_length())
    plans = {"packed": batches, "padded": PaddedPlan(**{**fields, "shape": shape, "validation": ()})}
    runs = {name: _started(name, plan, settings, inputs) for name, plan in plans.items()}
    rows = tuple(row for row, _ in runs.values())
    for step in range(steps + 2):
        for row, steps_of in runs.values():
            took, cpu, loss = next(steps_of)
            row.losses.append(loss)
            if step >= 2:
                row.step_ms.append(took)
                row.cpu_ms.append(cpu)
                row.tokens.append(batches.tokens_of(step))
    return rows[0], rows[1]


def _started(
    name: str, plan: BatchPlan, settings: FinetuneSettings, inputs: FinetuneInputs
) -> tuple[Row, Iterator[tuple[float, float, float]]]:
    recipe = Recipe(
        base=inputs.base,
        batches=plan,
        optimizer=make_optimizer(settings.lr, plan.total_steps),
        rank=settings.lora_rank,
        scale=settings.lora_alpha / settings.lora_rank,
        execution=execution_of(_plan()),
        on_device=False,
    )
    compiled, seconds = begin_compiling(recipe).finish(lambda: False)
    row = Row(name, f"{plan.shape.rows} x {plan.shape.length}", compile_s=seconds)
    return row, _steps(load_program(recipe, compiled), recipe, settings.seed)


def _steps(program: Program, recipe: Recipe, seed: int) -> Iterator[tuple[float, float, float]]:
    """(milliseconds, processor milliseconds, loss) of one step after the other, each waited for."""
    state = initial_state(init_lora(recipe.base.params, recipe.rank, seed), recipe.optimizer)
    for step in range(recipe.batches.total_steps):
        fetched = program.feed(step)
        began, cpu = time.perf_counter(), time.process_time()
        state, metrics = program.step(state, fetched)
        jax.block_until_ready(metrics)
        yield 1e3 * (time.perf_counter() - began), 1e3 * (time.process_time() - cpu), float(metrics.loss)
    program.feed.close()


def first_loss_s(settings: FinetuneSettings) -> float | None:
    """Seconds from the start of a trainer process to the first metrics line it writes."""
    with tempfile.TemporaryDirectory() as folder:
        directory = create_run("finetune", settings, _plan(), Path(folder))
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", BEGAN_VARIABLE: repr(time.monotonic())}
        command = [sys.executable, "-m", "needle.train", str(directory)]
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=subprocess.DEVNULL)
        with _ended(process):
            while not (directory / "metrics.jsonl").exists():
                if process.poll() is not None:
                    return None
                time.sleep(0.02)
            return time.monotonic() - began


def peer(settings: FinetuneSettings, inputs: FinetuneInputs, steps: int) -> Row:
    """cactus-needle on the same files, by what it prints and when; its first epoch only."""
    row = Row("peer")
    python = os.environ.get(PEER_VARIABLE)
    if not python:
        row.missing = f"not measured: {PEER_VARIABLE} names no Python"
        return row
    with tempfile.TemporaryDirectory() as folder:
        _measure_peer(row, python, Path(folder), settings, inputs, steps)
    return row


def _measure_peer(
    row: Row, python: str, folder: Path, settings: FinetuneSettings, inputs: FinetuneInputs, steps: int
) -> None:
    save_checkpoint(folder / "base.pkl", *load_checkpoint(sample_directory() / "base.safetensors"))
    options = {
        "--checkpoint": "base.pkl", "--out": "out.pkl", "--qat-bits": "none", "--epochs": settings.epochs,
        "--batch-size": settings.batch_size, "--lr": settings.lr, "--lora-rank": settings.lora_rank,
        "--lora-alpha": settings.lora_alpha, "--max-len": settings.max_len, "--seed": settings.seed,
        "--val-split": settings.val_split,
    }  # fmt: skip
    flags = [str(part) for option in options.items() for part in option]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONUNBUFFERED": "1"}
    environment.pop("PYTHONPATH", None)
    command = [python, "-c", _PEER, "finetune", str(sample_directory() / "train.jsonl"), *flags]
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with _ended(process):
        last = _follow_peer(row, process, inputs.batches, steps, began)
    if len(row.step_ms) < steps:
        row.missing = f"not measured: {last or 'it printed nothing'}"


def _follow_peer(
    row: Row, process: subprocess.Popen[str], batches: BatchPlan, steps: int, began: float
) -> str:
    """Take the times at which its step lines arrive. Returns the last line it printed."""
    assert process.stdout is not None
    last, before, child = "", (0.0, 0.0), psutil.Process(process.pid)
    for line in process.stdout:
        last = line.strip()
        found = _PEER_STEP.search(line)
        if found and len(row.step_ms) < steps and time.monotonic() - began < _PEER_LIMIT_S:
            used = child.cpu_times()
            now = time.monotonic(), used.user + used.system
            step = int(found[1])
            row.losses.append(float(found[2]))
            if row.first_loss_s is None:
                row.first_loss_s = now[0] - began
            elif step > 2:
                row.step_ms.append(1e3 * (now[0] - before[0]))
                row.cpu_ms.append(1e3 * (now[1] - before[1]))
                row.tokens.append(batches.tokens_of(step - 1))
            before = now
        if len(row.step_ms) >= steps:
            break
    return last


@contextlib.contextmanager
def _ended(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> Iterator[None]:
    """The process is gone afterwards, whatever happened."""
    try:
        yield
    finally:
        process.kill()
        process.wait()


def print_table(rows: list[Row]) -> None:
    packed = rows[0]
    head = (
        "",
        "shape",
        "compile",
        "first loss",
        "step",
        "CPU a step",
        "useful tok/s",
        "per CPU s",
        "ours is",
    )
    print(("{:<8}{:>10}" + "{:>13}" * 7).format(*head))
    for row in rows:
        if row.missing:
            print(f"{row.name:<8}  {row.missing}")
            continue
        cells = (
            _or_blank(row.compile_s, "{:.1f} s"),
            _or_blank(row.first_loss_s, "{:.1f} s"),
            f"{statistics.median(row.step_ms):.0f} ms",
            f"{statistics.median(row.cpu_ms):.0f} ms",
            f"{row.tokens_per_s:,.0f}",
            f"{row.tokens_per_cpu_s:,.0f}",
            f"{packed.tokens_per_cpu_s / row.tokens_per_cpu_s:.2f} x",
        )
        print(("{:<8}{:>10}" + "{:>13}" * 7).format(row.name, row.shape, *cells))
    for row in rows[1:]:
        if not row.missing:
            apart = max(abs(a - b) for a, b in zip(packed.losses, row.losses, strict=False))
            print(f"losses of {row.name} and packed are at most {apart:.1e} apart")


def _or_blank(value: float | None, form: str) -> str:
    return form.format(value) if value is not None else ""


def _plan() -> Plan:
    why = "a benchmark"
    return Plan(
        command=(sys.executable, "-m", "needle.train", "{run}"),
        command_line=(),
        interpreter="",
        environment=(),
        backend=Decision("cpu", why),
        kernel=Decision("xla", why),
        placement=Decision("device", why),
        precision=Decision("float32", why),
        base=Decision("sample", why),
    )


if __name__ == "__main__":
    main()
