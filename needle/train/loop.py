"""The training loop. Each step: fetch, dispatch, report the step before, look at what was asked for.

The device works on step k while the host reports step k-1 and prepares k+1; nobody waits for a number. All
that the loop does to the world comes in as functions, and each is a function of the step number, so that a
resumed run does what an unbroken one would have done.

Steps are counted from 0 here; what is reported is the number of steps done, from 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import jax

from needle.train.feed import Fetched
from needle.train.state import TrainState
from needle.train.step import StepMetrics


class StepTiming(NamedTuple):
    """Where the time of one step went. `data_ms` and `transfer_ms` are waits; what overlapped is free."""

    step_ms: float
    data_ms: float
    transfer_ms: float
    compute_ms: float


class NonFinite(NamedTuple):
    """The first step with a loss or gradient that is not a number, and what it said."""

    step: int
    metrics: StepMetrics


class LoopEnd(NamedTuple):
    """How the loop ended, with the last state whose numbers are all finite.

    `enough` is True when an evaluation said that there is no use in going on.
    """

    state: TrainState
    stopped: bool = False
    nonfinite: NonFinite | None = None
    enough: bool = False


@dataclass(frozen=True)
class Work:
    """What the loop calls. `report` gets steps counted from 0; `evaluate` says whether it is enough."""

    fetch: Callable[[int], Fetched]
    train_step: Callable[[TrainState, Fetched], tuple[TrainState, StepMetrics]]
    report: Callable[[int, StepMetrics, StepTiming], None]
    evaluate: Callable[[TrainState], bool]
    save: Callable[[TrainState], None]
    save_due: Callable[[], bool]
    stop_requested: Callable[[], bool]


class _Dispatched(NamedTuple):
    """A step on its way. `free_at` is when the loop was last free to begin it: its start or a pause's end."""

    step: int
    fetched: Fetched
    free_at: float
    dispatched_at: float
    completed: Future[tuple[float, StepMetrics]]


def run_loop(
    state: TrainState, work: Work, *, first_step: int, total_steps: int, evaluate_every: int
) -> LoopEnd:
    """Train from `first_step` to the end, a stop request or the first non-finite number.

    After every `evaluate_every` steps and the last one the state is evaluated. `state` is consumed. Every
    step that counts is reported before this returns, and nothing is saved here at the end: that is the
    caller's, once.
    """
    stopping = enough = False
    nonfinite: NonFinite | None = None
    before: _Dispatched | None = None
    free_at = done_at = time.perf_counter()
    with ThreadPoolExecutor(1, "completion") as waiter:
        for step in range(first_step, total_steps):
            fetched = work.fetch(step)
            dispatched_at = time.perf_counter()
            state, metrics = work.train_step(state, fetched)
            current = _Dispatched(step, fetched, free_at, dispatched_at, waiter.submit(_await, metrics))
            if before is not None:
                done_at, nonfinite = _report(before, done_at, work)
            before = current
            is_last = step + 1 == total_steps
            due = is_last or (step + 1) % evaluate_every == 0
            stopping = not is_last and work.stop_requested()
            if nonfinite is None and (due or stopping):
                done_at, nonfinite = _report(current, done_at, work)
                before = None
            if nonfinite is not None or stopping:
                break
            if due:
                enough = work.evaluate(state)
            elif work.save_due():
                work.save(state)
            else:
                continue
            if enough:
                break
            free_at = time.perf_counter()
    return LoopEnd(state, stopping, nonfinite, enough)


def step_timing(
    fetched: Fetched, free_at: float, dispatched_at: float, done_at: float, before_at: float
) -> StepTiming:
    """The times of one step from moments in seconds; `before_at` is when the step before was done.

    A step lasts from the end of the one before, or from the end of a pause such as an evaluation; it
    computes from its dispatch, or from when the device was free.
    """
    return StepTiming(
        step_ms=1e3 * (done_at - max(before_at, free_at)),
        data_ms=fetched.data_ms,
        transfer_ms=fetched.transfer_ms,
        compute_ms=1e3 * (done_at - max(before_at, dispatched_at)),
    )


def _await(metrics: StepMetrics) -> tuple[float, StepMetrics]:
    """When a step was done, seen by a thread that does nothing else, and its numbers on the host."""
    jax.block_until_ready(metrics)
    return time.perf_counter(), jax.device_get(metrics)


def _report(dispatched: _Dispatched, before_at: float, work: Work) -> tuple[float, NonFinite | None]:
    done_at, metrics = dispatched.completed.result()
    timing = step_timing(dispatched.fetched, dispatched.free_at, dispatched.dispatched_at, done_at, before_at)
    work.report(dispatched.step, metrics, timing)
    return done_at, None if metrics.finite else NonFinite(dispatched.step, metrics)
