"""LoRA fine-tuning of a Needle model: from the settings of a run to its adapter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import jax

from needle.config import FinetuneSettings, from_json
from needle.data.calls import Scores
from needle.data.score_table import score_lines
from needle.errors import RunError
from needle.model.adapters import AdapterFile
from needle.model.lora import init_lora
from needle.runs.record import Plan, RunRequest
from needle.runs.writer import RunWriter
from needle.train import state as states
from needle.train.backend import check_backend, configure_jax
from needle.train.ending import Ending, StoppedEarly
from needle.train.estimate import device_limit_bytes, is_too_large, needed_bytes
from needle.train.inputs import FinetuneInputs, read_inputs
from needle.train.loop import LoopEnd, Work, run_loop
from needle.train.optimizer import Optimizer, make_optimizer
from needle.train.output import adapter_path, write_adapter
from needle.train.program import (
    Program,
    Recipe,
    begin_compiling,
    execution_of,
    load_program,
    rounding_of,
)
from needle.train.recorder import Recorder, nonfinite_words, say
from needle.train.scoring import score_models
from needle.train.state import TrainState
from needle.train.step import initial_state
from needle.train.stop import StopSignal

SAVE_EVERY_S = 600.0
_RECOMPUTING = (
    "the step does not fit in the device's memory; layers are computed again in the backward pass "
    "instead of kept, which takes about a third longer (a smaller --batch-size avoids it)"
)


@dataclass(frozen=True, eq=False)
class Session:
    """What stays the same during one attempt."""

    settings: FinetuneSettings
    plan: Plan
    recorder: Recorder
    out: Path
    inputs: FinetuneInputs
    stop_requested: Callable[[], bool]

    @property
    def scale(self) -> float:
        """The merged kernel is W + scale · A·B."""
        return self.settings.lora_alpha / self.settings.lora_rank

    @property
    def checkpoints(self) -> Path:
        return self.recorder.writer.files.checkpoints


def run(request: RunRequest, writer: RunWriter, signals: StopSignal) -> Ending:
    """Fine-tune as `run.json` says. Raises NeedleError where a person can act, StoppedEarly on a stop."""
    session = _open_session(request, writer, signals)
    batches = session.inputs.batches
    state, program = _prepare(session)
    try:
        end = run_loop(
            state,
            _work(session, program),
            first_step=int(state.step),
            total_steps=batches.total_steps,
            steps_per_epoch=batches.steps_per_epoch,
        )
    finally:
        program.feed.close()
    return _finish(session, end)


def _open_session(request: RunRequest, writer: RunWriter, signals: StopSignal) -> Session:
    """The backend first, then the place for the result, then the files."""
    settings = from_json(request.task, request.settings)
    assert isinstance(settings, FinetuneSettings)
    configure_jax()
    backend = check_backend(request.plan.backend.choice)
    recorder = Recorder(writer)
    recorder.backend(backend, request.plan)
    out = adapter_path(settings, writer.files, writer.attempt)
    inputs = read_inputs(settings)
    recorder.data(inputs)
    return Session(
        settings,
        request.plan,
        recorder,
        out,
        inputs,
        lambda: bool(signals.received) or writer.stop_requested(),
    )


def _prepare(session: Session) -> tuple[TrainState, Program]:
    """The state to start from and the compiled program; the compiler works while the state is made."""
    settings, inputs, recorder = session.settings, session.inputs, session.recorder
    if session.stop_requested():
        raise StoppedEarly("stopped before the first step")
    recipe = Recipe(
        base=inputs.base,
        batches=inputs.batches,
        optimizer=make_optimizer(settings.lr, inputs.batches.total_steps),
        rank=settings.lora_rank,
        scale=session.scale,
        execution=execution_of(session.plan),
        on_device=session.plan.placement.choice == "device",
        rounding=rounding_of(session.plan),
    )
    recorder.phase("compiling")
    compilation = begin_compiling(recipe)
    state = _initial_or_resumed(session, recipe.optimizer)
    compiled, seconds = compilation.finish(session.stop_requested)
    if not recipe.execution.remat and is_too_large(needed_bytes(compiled[0]), device_limit_bytes()):
        recorder.warning(_RECOMPUTING)
        recipe = replace(recipe, execution=replace(recipe.execution, remat=True))
        compiled, more_seconds = begin_compiling(recipe).finish(session.stop_requested)
        seconds += more_seconds
    recorder.compiled(seconds)
    program = load_program(recipe, compiled)
    recorder.phase("running")
    return state, program


def _initial_or_resumed(session: Session, optimizer: Optimizer) -> TrainState:
    """The state to start from: of the newest whole checkpoint in a later attempt, else a fresh one."""
    settings, recorder = session.settings, session.recorder
    state = initial_state(init_lora(session.inputs.base.params, settings.lora_rank, settings.seed), optimizer)
    if recorder.writer.attempt > 1:
        newest = states.newest(session.checkpoints)
        states.tidy(session.checkpoints, newest)
        if newest is not None:
            state = states.load(newest, state, session.inputs.digests)
        recorder.resumed(int(state.step))
    return state


def _work(session: Session, program: Program) -> Work:
    """What the loop calls, bound to this attempt."""
    recorder, batches = session.recorder, session.inputs.batches
    saved_at = time.monotonic()

    def save(state: TrainState) -> None:
        nonlocal saved_at
        _save(session, state)
        saved_at = time.monotonic()

    def save_due() -> bool:
        return recorder.writer.checkpoint_requested() or time.monotonic() - saved_at >= SAVE_EVERY_S

    def end_epoch(step: int, state: TrainState) -> None:
        val_loss = program.val_loss(state.adapter)
        if val_loss is not None:
            recorder.evaluation(step, val_loss)
        save(state)

    return Work(
        fetch=program.feed,
        train_step=program.step,
        report=lambda step, metrics, timing: recorder.step(step, metrics, timing, batches),
        end_epoch=end_epoch,
        save=save,
        save_due=save_due,
        stop_requested=session.stop_requested,
    )


def _finish(session: Session, end: LoopEnd) -> Ending:
    """Save what there is, whatever the end was, and say it."""
    step, total = int(end.state.step), session.inputs.batches.total_steps
    adapter, elsewhere = None, ""
    if step:
        _save(session, end.state)
        adapter, elsewhere = _save_adapter(session, end.state)
    if end.nonfinite is not None:
        lines = session.inputs.batches.lines(end.nonfinite.step)
        session.recorder.nonfinite(*end.nonfinite, lines)
        return Ending("failed", nonfinite_words(*end.nonfinite, lines, saved=step > 0), exit_status=1)
    if end.stopped:
        where = elsewhere or "the adapter is saved"
        return Ending("stopped", f"stopped on request after step {step} of {total}; {where}")
    if adapter is not None:
        _score(session, adapter)
    return Ending("finished", elsewhere)


def _save(session: Session, state: TrainState) -> None:
    """Write a checkpoint; one that cannot be written is told and does not cost the training."""
    try:
        directory = states.save(session.checkpoints, state, session.inputs.digests)
    except (OSError, RunError) as error:
        session.recorder.warning(f"the checkpoint of step {int(state.step)} could not be written: {error}")
        return
    if directory is not None:
        session.recorder.checkpoint(int(state.step), directory)


def _save_adapter(session: Session, state: TrainState) -> tuple[AdapterFile, str]:
    """Write the result. Returns it, and why it is elsewhere than asked for, usually nothing."""
    settings, recorder = session.settings, session.recorder
    rounding = rounding_of(session.plan)
    adapter = AdapterFile(
        lora=jax.device_get(state.adapter),
        scale=session.scale,
        base=session.inputs.base.name,
        rank=settings.lora_rank,
        seed=settings.seed,
        qat_bits=rounding.default if rounding else None,
        qat_bits_map=str(rounding) if rounding and rounding.widths else None,
    )
    path, elsewhere = write_adapter(session.out, adapter, settings, recorder.writer.files)
    if elsewhere:
        recorder.warning(elsewhere)
    recorder.artifact(path)
    return adapter, elsewhere


def _score(session: Session, adapter: AdapterFile) -> None:
    """Say how good the result is, and the base without it; the training is saved by then."""
    if not session.settings.eval or not session.inputs.validation:
        return
    recorder = session.recorder
    recorder.phase("scoring")
    told: list[tuple[str, Scores]] = []

    def tell(model: str, weights: str, scores: Scores) -> None:
        recorder.scores(model, weights, scores)
        told.append((f"{model}, {weights}", scores))

    execution = replace(execution_of(session.plan), remat=False)
    problem = score_models(session.inputs, adapter, execution, tell, session.stop_requested)
    if problem:
        say(f"scores: {problem}")
    for line in score_lines(told) if told else ():
        say(line)
