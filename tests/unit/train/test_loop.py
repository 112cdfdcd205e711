"""The loop on a toy task: its order of work, its timing and its ways to end."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from needle.train.feed import Fetched
from needle.train.loop import LoopEnd, StepTiming, Work, run_loop, step_timing
from needle.train.state import TrainState
from needle.train.step import Batch, StepMetrics

NEVER: Callable[[], bool] = lambda: False  # noqa: E731


@dataclass
class Diary:
    """What the loop did, in order."""

    entries: list[tuple[str, int]] = field(default_factory=list)
    losses: dict[int, float] = field(default_factory=dict)
    timings: list[StepTiming] = field(default_factory=list)

    def steps(self, what: str) -> list[int]:
        return [step for entry, step in self.entries if entry == what]


def toy_state() -> TrainState:
    return TrainState(jnp.asarray(0), {"w": {"A": jnp.asarray(1.0)}}, (), jnp.asarray(True))


def work_of(
    diary: Diary,
    *,
    nonfinite_at: int | None = None,
    enough_at: int | None = None,
    save_due: Callable[[], bool] = NEVER,
    stop_requested: Callable[[], bool] = NEVER,
) -> Work:
    nothing = Batch(np.zeros(1), np.zeros(1), np.zeros(1))

    @jax.jit
    def toy_step(state: TrainState, step: jax.Array) -> tuple[TrainState, StepMetrics]:
        finite = state.finite & (step != (-1 if nonfinite_at is None else nonfinite_at))
        after = TrainState(state.step + finite, state.adapter, state.optimizer, finite)
        return after, StepMetrics(10.0 - step, jnp.asarray(1.0), jnp.asarray(0.1), finite)

    def fetch(step: int) -> Fetched:
        diary.entries.append(("fetch", step))
        return Fetched(nothing, np.int32(step), 0.0, 0.0)

    def train_step(state: TrainState, fetched: Fetched) -> tuple[TrainState, StepMetrics]:
        diary.entries.append(("dispatch", int(fetched.position)))
        return toy_step(state, fetched.position)

    def evaluate(state: TrainState) -> bool:
        diary.entries.append(("evaluate", int(state.step)))
        return int(state.step) == enough_at

    def report(step: int, metrics: StepMetrics, timing: StepTiming) -> None:
        diary.entries.append(("report", step))
        diary.losses[step] = float(metrics.loss)
        diary.timings.append(timing)

    return Work(
        fetch=fetch,
        train_step=train_step,
        report=report,
        evaluate=evaluate,
        save=lambda state: diary.entries.append(("save", int(state.step))),
        save_due=save_due,
        stop_requested=stop_requested,
    )


def run(diary: Diary, work: Work, *, first_step: int = 0, total_steps: int = 6) -> LoopEnd:
    return run_loop(toy_state(), work, first_step=first_step, total_steps=total_steps, evaluate_every=3)


def test_a_step_is_reported_after_the_next_was_dispatched() -> None:
    diary = Diary()
    run(diary, work_of(diary))
    assert diary.entries[:6] == [
        ("fetch", 0),
        ("dispatch", 0),
        ("fetch", 1),
        ("dispatch", 1),
        ("report", 0),
        ("fetch", 2),
    ]


def test_every_step_is_reported_once_and_evaluations_come_after_the_report_of_their_step() -> None:
    diary = Diary()
    end = run(diary, work_of(diary))
    assert diary.steps("report") == [0, 1, 2, 3, 4, 5]
    assert diary.losses == {step: 10.0 - step for step in range(6)}
    assert diary.steps("evaluate") == [3, 6]
    assert diary.entries.index(("evaluate", 3)) == diary.entries.index(("report", 2)) + 1
    assert (int(end.state.step), end.stopped, end.nonfinite) == (6, False, None)


def test_the_last_step_is_evaluated_wherever_it_falls() -> None:
    diary = Diary()
    run(diary, work_of(diary), total_steps=5)
    assert diary.steps("evaluate") == [3, 5]


def test_an_evaluation_that_is_enough_ends_the_training() -> None:
    diary = Diary()
    end = run(diary, work_of(diary, enough_at=3))
    assert diary.steps("report") == [0, 1, 2]
    assert (int(end.state.step), end.enough, end.stopped) == (3, True, False)


def test_a_stop_request_finishes_and_reports_the_step_under_way_and_no_other() -> None:
    diary = Diary()
    end = run(diary, work_of(diary, stop_requested=lambda: len(diary.steps("dispatch")) == 2))
    assert diary.steps("dispatch") == diary.steps("report") == [0, 1]
    assert (int(end.state.step), end.stopped) == (2, True)


def test_a_stop_request_during_the_last_step_changes_nothing() -> None:
    diary = Diary()
    end = run(diary, work_of(diary, stop_requested=lambda: len(diary.steps("dispatch")) == 6))
    assert not end.stopped
    assert diary.steps("evaluate") == [3, 6]


def test_training_ends_at_a_non_finite_step_with_the_state_before_it() -> None:
    diary = Diary()
    end = run(diary, work_of(diary, nonfinite_at=3), total_steps=9)
    assert end.nonfinite is not None
    assert end.nonfinite.step == 3
    assert int(end.state.step) == 3
    assert diary.steps("report") == [0, 1, 2, 3]
    assert diary.steps("evaluate") == [3]


def test_a_non_finite_last_step_is_found_too_and_its_epoch_is_not_evaluated() -> None:
    diary = Diary()
    end = run(diary, work_of(diary, nonfinite_at=5))
    assert end.nonfinite is not None
    assert end.nonfinite.step == 5
    assert diary.steps("evaluate") == [3]


def test_a_resumed_loop_begins_at_its_step_and_ends_its_epochs_where_an_unbroken_one_does() -> None:
    diary = Diary()
    run(diary, work_of(diary), first_step=4)
    assert diary.steps("dispatch") == [4, 5]
    two_done = 2  # the toy state counts from 0
    assert diary.steps("evaluate") == [two_done]


def test_a_save_that_is_due_happens_between_steps_but_not_where_an_epoch_saves_anyway() -> None:
    diary = Diary()
    run(diary, work_of(diary, save_due=lambda: True))
    assert diary.steps("save") == [1, 2, 4, 5]
    assert diary.steps("evaluate") == [3, 6]


def test_a_resumed_run_that_was_complete_does_nothing() -> None:
    diary = Diary()
    end = run(diary, work_of(diary), first_step=6)
    assert diary.entries == []
    assert (end.stopped, end.nonfinite) == (False, None)


FETCHED = Fetched(Batch(np.zeros(1), np.zeros(1), np.zeros(1)), np.int32(0), 2.0, 1.0)


@pytest.mark.parametrize(
    ("moments", "step_ms", "compute_ms"),
    [
        # the device was busy until 10.0 with the step before, which was dispatched ahead
        ({"free_at": 0.0, "dispatched_at": 9.9, "before_at": 10.0, "done_at": 10.5}, 500, 500),
        # the device waited for the host: the batch came late
        ({"free_at": 0.0, "dispatched_at": 10.4, "before_at": 10.0, "done_at": 10.5}, 500, 100),
        # after an evaluation that lasted from 10.0 to 20.0
        ({"free_at": 20.0, "dispatched_at": 20.1, "before_at": 10.0, "done_at": 20.5}, 500, 400),
    ],
)
def test_a_steps_time_leaves_out_pauses_and_its_compute_time_leaves_out_waiting_for_data(
    moments: dict[str, float], step_ms: float, compute_ms: float
) -> None:
    timing = step_timing(FETCHED, **moments)
    assert timing == pytest.approx((step_ms, 2.0, 1.0, compute_ms))


def test_the_loop_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[ThreadPoolExecutor] = []

    class Watched(ThreadPoolExecutor):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            pools.append(self)

    monkeypatch.setattr("needle.train.loop.ThreadPoolExecutor", Watched)
    diary = Diary()
    run(diary, work_of(diary, nonfinite_at=1))
    assert pools
    assert not any(thread.is_alive() for pool in pools for thread in pool._threads)
