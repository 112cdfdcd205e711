"""What a fine-tuning run tells: lines in the record for programs, lines in the log for people."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from needle.data.calls import Scores
from needle.model.adapters import Adapter, AdapterFile
from needle.runs.record import Plan
from needle.runs.writer import RunWriter
from needle.train.backend import BackendFacts
from needle.train.batches import BatchPlan
from needle.train.estimate import device_memory
from needle.train.inputs import FinetuneInputs
from needle.train.loop import StepTiming
from needle.train.step import StepMetrics
from needle.units import number_text

_LOG_EVERY_S = 10.0


class Recorder:
    """Tells of one attempt. Steps are given counted from 0 and told as steps done."""

    def __init__(self, writer: RunWriter) -> None:
        self.writer = writer
        self._logged_at = -_LOG_EVERY_S

    def backend(self, facts: BackendFacts, plan: Plan) -> None:
        self.writer.event(
            "backend",
            platform=facts.platform,
            device=facts.device,
            devices=facts.device_count,
            kernel=plan.kernel.choice,
            precision=plan.precision.choice,
            jax=facts.jax_version,
        )
        say(
            f"JAX {facts.jax_version} on {facts.platform}: {facts.device_count} x {facts.device}; "
            f"attention {plan.kernel.choice}, {plan.precision.choice}"
        )

    def data(self, inputs: FinetuneInputs) -> None:
        batches, selected = inputs.batches, inputs.selected
        validation = len(batches.order.validation)
        self.writer.event(
            "data",
            examples=len(selected.examples),
            train=batches.order.training_count,
            validation=validation,
            tokens=sum(len(example) for example in selected.examples),
            target_tokens=sum(example.target_tokens for example in selected.examples),
            skipped=list(selected.skipped),
            rows=batches.shape.rows,
            length=batches.shape.length,
            total=batches.total_steps,
        )
        for note in selected.notes:
            say(note)
        say(
            f"{len(selected.examples)} examples, {validation} held out, {len(selected.skipped)} left out; "
            f"{batches.total_steps} steps of {batches.shape.rows} x {batches.shape.length} tokens"
        )

    def phase(self, phase: str) -> None:
        self.writer.event("phase", phase=phase)

    def compiled(self, seconds: float) -> None:
        self.writer.event("compiled", seconds=round(seconds, 3))
        say(f"compiled in {seconds:.1f} s")

    def resumed(self, step: int) -> None:
        self.writer.event("resumed", step=step)
        say(f"resumed at step {step}" if step else "no checkpoint to resume from: starting again")

    def warning(self, message: str) -> None:
        self.writer.event("warning", message=message)
        say(f"warning: {message}")

    def step(self, step: int, metrics: StepMetrics, timing: StepTiming, batches: BatchPlan) -> None:
        """One metrics line; a log line for the first step, then every few seconds."""
        done, tokens = step + 1, batches.tokens_of(step)
        self.writer.report(
            done,
            loss=float(metrics.loss),
            lr=float(metrics.lr),
            grad_norm=float(metrics.grad_norm),
            tokens=int(batches.tokens_before[done]),
            tokens_per_s=round(1e3 * tokens / max(timing.step_ms, 1e-3), 1),
            **{name: round(value, 3) for name, value in timing._asdict().items()},
            **_memory_in_use(),
        )
        now = time.monotonic()
        if now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            say(f"step {done}/{batches.total_steps}  loss {metrics.loss:.4f}  {timing.step_ms:.0f} ms")

    def trained(self, adapter: Adapter) -> None:
        """What is trained: the kernels that get matrices, and how many numbers those have."""
        kernels = sorted(path.split("/")[-2] for path in adapter)
        numbers = sum(matrix.size for matrices in adapter.values() for matrix in matrices.values())
        self.writer.event("trained", kernels=kernels, parameters=numbers)
        say(f"{numbers:,} parameters are trained, beside {', '.join(kernels)}")

    def evaluation(self, step: int, val_loss: float, *, is_best: bool) -> None:
        """The validation loss after so many steps."""
        self.writer.report(step, val_loss=val_loss)
        self.writer.event("evaluation", step=step, val_loss=val_loss, best=is_best)
        say(f"step {step}  validation loss {val_loss:.4f}{', the lowest so far' if is_best else ''}")

    def scores(self, model: str, weights: str, scores: Scores) -> None:
        """What a model scored on the validation examples; the table for people comes when all are there."""
        self.writer.event("scores", model=model, weights=weights, **scores.facts())

    def nonfinite(self, step: int, metrics: StepMetrics, lines: list[int]) -> None:
        self.writer.event(
            "nonfinite",
            step=step + 1,
            loss=float(metrics.loss),
            grad_norm=float(metrics.grad_norm),
            lines=lines,
        )

    def checkpoint(self, step: int, directory: Path) -> None:
        self.writer.event("checkpoint", step=step, path=self.writer.files.recorded(directory))

    def artifact(self, path: Path, adapter: AdapterFile) -> None:
        """An adapter that was written; the last one told is the result."""
        recorded = self.writer.files.recorded(path)
        loss = {} if adapter.val_loss is None else {"val_loss": adapter.val_loss}
        self.writer.event("artifact", path=recorded, step=adapter.step, **loss)
        known = f", validation loss {adapter.val_loss:.4f}" if loss else ""
        say(f"adapter: {recorded} (step {adapter.step}{known})")


def nonfinite_words(step: int, metrics: StepMetrics, lines: list[int], *, saved: bool) -> str:
    """Why a run ended at a number that is none, and what to do. `step` counts from 0."""
    loss_is_bad = not np.isfinite(metrics.loss)
    what = (
        f"the loss became {number_text(float(metrics.loss))}"
        if loss_is_bad
        else "the gradient was not finite"
    )
    shown = ", ".join(str(line) for line in lines[:20]) + (", …" if len(lines) > 20 else "")
    kept = f"; the adapter after step {step} is saved" if saved else ""
    return (
        f"{what} at step {step + 1}, on the examples of lines {shown}{kept}\n"
        "  lower --lr, and look at those lines"
    )


def _memory_in_use() -> dict[str, int]:
    told = device_memory()
    names = {"device_bytes_in_use": "bytes_in_use", "device_peak_bytes": "peak_bytes_in_use"}
    return {name: told[key] for name, key in names.items() if key in told}


def say(text: str) -> None:
    """One line for people, into the log at once."""
    print(text, flush=True)
