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
from needle.model.adapters import AdapterFile, save_adapter
from needle.model.lora import changes_nothing, init_lora
from needle.runs.record import Plan, RunRequest
from needle.runs.writer import RunWriter
from needle.train import state as states
from needle.train.backend import check_backend, configure_jax
from needle.train.best import BestAdapter
from needle.train.ending import Ending, StoppedEarly
from needle.train.estimate import device_limit_bytes, is_too_large, needed_bytes
from needle.train.inputs import FinetuneInputs, read_inputs
from needle.train.loop import LoopEnd, Work, run_loop
from needle.train.optimizer import make_optimizer
from needle.train.output import BEST_NAME, LAST_NAME, adapter_path, write_adapter
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
    "instead of kept, which takes about a third longer (a smaller --micro-batch-size avoids it)"
)


@dataclass(frozen=True, eq=False)
class Session:
    """What stays the same during one attempt."""

    settings: FinetuneSettings
    plan: Plan
    recorder: Recorder
    out: Path
    inputs: FinetuneInputs
    best: BestAdapter
    stop_requested: Callable[[], bool]

    @property
    def targets(self) -> tuple[str, ...]:
        """The kernels that get an adapter, by short name."""
        return tuple(self.settings.lora_targets.split(","))

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
    state, program = _prepare(session)
    first_step = int(state.step)
    if session.best.is_given_up(first_step):
        program.feed.close()
        return _finish(session, LoopEnd(state, enough=True))
    try:
        end = run_loop(
            state,
            _work(session, program),
            first_step=first_step,
            total_steps=session.inputs.batches.total_steps,
            evaluate_every=session.best.every,
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
    every = settings.eval_every or inputs.batches.steps_per_epoch
    return Session(
        settings,
        request.plan,
        recorder,
        out,
        inputs,
        BestAdapter(writer.files.artifacts / BEST_NAME, every, settings.patience),
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
        targets=session.targets,
    )
    recorder.phase("compiling")
    fresh = init_lora(inputs.base.params, settings.lora_rank, settings.seed, session.targets)
    recorder.trained(fresh)
    compilation = begin_compiling(recipe)
    state = _initial_or_resumed(session, initial_state(fresh, recipe.optimizer))
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


def _initial_or_resumed(session: Session, state: TrainState) -> TrainState:
    """The state to start from: of the newest whole checkpoint in a later attempt, else the fresh one."""
    recorder = session.recorder
    if recorder.writer.attempt > 1:
        newest = states.newest(session.checkpoints)
        states.tidy(session.checkpoints, newest)
        if newest is not None:
            state = states.load(newest, state, session.inputs.digests)
        session.best.restore(int(state.step))
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

    def evaluate(state: TrainState) -> bool:
        step, val_loss = int(state.step), program.val_loss(state.adapter)
        if val_loss is not None:
            recorder.evaluation(step, val_loss, is_best=_consider(session, state, val_loss))
        save(state)
        return step < batches.total_steps and session.best.is_given_up(step)

    return Work(
        fetch=program.feed,
        train_step=program.step,
        report=lambda step, metrics, timing: recorder.step(step, metrics, timing, batches),
        evaluate=evaluate,
        save=save,
        save_due=save_due,
        stop_requested=session.stop_requested,
    )


def _consider(session: Session, state: TrainState, val_loss: float) -> bool:
    """Keep an adapter that is the best so far; one that cannot be written does not cost the training."""
    try:
        return session.best.consider(_adapter_of(session, state, val_loss))
    except (OSError, RunError) as error:
        session.recorder.warning(f"the best adapter so far could not be written: {error}")
        return True


def _finish(session: Session, end: LoopEnd) -> Ending:
    """Save what there is, whatever the end was, and say it."""
    step, total = int(end.state.step), session.inputs.batches.total_steps
    adapter, elsewhere = None, ""
    if step:
        _save(session, end.state)
        adapter, elsewhere = _save_adapters(session, end.state)
    if end.nonfinite is not None:
        lines = session.inputs.batches.lines(end.nonfinite.step)
        session.recorder.nonfinite(*end.nonfinite, lines)
        return Ending("failed", nonfinite_words(*end.nonfinite, lines, saved=step > 0), exit_status=1)
    if end.stopped:
        where = elsewhere or "the adapter is saved"
        return Ending("stopped", f"stopped on request after step {step} of {total}; {where}")
    if adapter is not None:
        _score(session, adapter)
    return Ending("finished", "; ".join(filter(None, (_enough_words(session, end), elsewhere))))


def _enough_words(session: Session, end: LoopEnd) -> str:
    """Why a run ended before its last step, usually nothing."""
    best = session.best.adapter
    if not end.enough or best is None:
        return ""
    return (
        f"stopped early after step {int(end.state.step)} of {session.inputs.batches.total_steps}: "
        f"{session.settings.patience} validation losses in a row were no lower than the "
        f"{best.val_loss:.4f} of step {best.step}"
    )


def _save(session: Session, state: TrainState) -> None:
    """Write a checkpoint; one that cannot be written is told and does not cost the training."""
    try:
        directory = states.save(session.checkpoints, state, session.inputs.digests)
    except (OSError, RunError) as error:
        session.recorder.warning(f"the checkpoint of step {int(state.step)} could not be written: {error}")
        return
    if directory is not None:
        session.recorder.checkpoint(int(state.step), directory)


def _save_adapters(session: Session, state: TrainState) -> tuple[AdapterFile, str]:
    """Write the result, and the last adapter beside it where the best one is the result.

    Returns the result, and why it is elsewhere than asked for, usually nothing.
    """
    settings, recorder, best = session.settings, session.recorder, session.best
    files = recorder.writer.files
    latest = best.latest
    last = latest if latest and latest.step == int(state.step) else _adapter_of(session, state)
    kept = best.adapter if settings.keep == "best" and best.adapter else last
    path, elsewhere = write_adapter(session.out, kept, settings, files)
    if elsewhere:
        recorder.warning(elsewhere)
    if best.adapter and best.adapter.step != last.step:
        beside = last if kept is best.adapter else best.adapter
        beside_path = files.artifacts / LAST_NAME if kept is best.adapter else best.path
        save_adapter(beside_path, beside)
        recorder.artifact(beside_path, beside)
    recorder.artifact(path, kept)
    if changes_nothing(kept.lora):
        recorder.warning("the adapter changes nothing: more steps or a higher --lr are needed")
    return kept, elsewhere


def _adapter_of(session: Session, state: TrainState, val_loss: float | None = None) -> AdapterFile:
    """What a state has trained, with all that using it needs to know."""
    settings, rounding = session.settings, rounding_of(session.plan)
    return AdapterFile(
        lora=jax.device_get(state.adapter),
        scale=session.scale,
        base=session.inputs.base.name,
        rank=settings.lora_rank,
        seed=settings.seed,
        qat_bits=rounding.default if rounding else None,
        qat_bits_map=str(rounding) if rounding and rounding.widths else None,
        step=int(state.step),
        val_loss=val_loss,
    )


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
