"""One run at one moment: everything Monitor shows, taken from its record in a worker thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from needle.runs.events import Event
from needle.runs.metrics import Series
from needle.runs.record import ENDED_PHASES, RunRequest, SystemSample

if TYPE_CHECKING:
    from needle.runs.reader import RunReader
    from needle.runs.state import Status

RECENT_STEPS = 50


@dataclass(frozen=True)
class StepTimes:
    """Milliseconds of the recent steps: median and 95th percentile, and the medians of the parts."""

    median_ms: float | None = None
    p95_ms: float | None = None
    parts_ms: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Extreme:
    """A metric's last value, and its best with the step it was reached at."""

    last: float | None = None
    best: float | None = None
    best_step: int = 0


@dataclass(frozen=True)
class Moment:
    """A run as its record tells it now. Times in seconds; series are arrays that never change."""

    request: RunRequest
    status: Status
    step: int
    total: int
    attempt: int
    elapsed_s: float | None
    left_s: float | None
    loss: Extreme
    val_loss: Extreme
    steps: StepTimes
    tokens_per_s: float | None
    last: dict[str, float]
    series: dict[str, Series]
    names: tuple[str, ...]
    events: tuple[Event, ...]
    sample: SystemSample | None
    attempt_starts: tuple[int, ...]
    taken_at: float

    @property
    def is_live(self) -> bool:
        """Whether the run may still change."""
        return self.status.phase not in ENDED_PHASES

    @property
    def share(self) -> float:
        """How much of the run is done, 0 to 1; 0 when its length is unknown."""
        return min(1.0, self.step / self.total) if self.total else 0.0


def moment_of(reader: RunReader, metric: str, now: float) -> Moment:
    """Take a moment from a reader; `metric` is the one shown besides the losses."""
    table, status, state = reader.metrics, reader.status(now), reader.state
    wanted = {name: table.series(name) for name in {"loss", "val_loss", "step_ms", metric}}
    step, total = reader.step, reader.total
    live = status.phase not in ENDED_PHASES
    end = now if live else (state.ended_at if state else 0.0)
    started = state.started_at if state else 0.0
    return Moment(
        request=reader.request,
        status=status,
        step=step,
        total=total,
        attempt=state.attempt if state else 1,
        elapsed_s=max(0.0, end - started) if started and end else None,
        left_s=seconds_left(wanted["loss"], step, total) if live else None,
        loss=extreme(wanted["loss"]),
        val_loss=extreme(wanted["val_loss"]),
        steps=step_times(reader),
        tokens_per_s=table.recent_median("tokens_per_s"),
        last={name: value for name in table.names() if (value := table.last(name)) is not None},
        series=wanted,
        names=table.names(),
        events=tuple(reader.events),
        sample=reader.system[-1] if reader.system else None,
        attempt_starts=tuple(start.step for start in table.attempts[1:]),
        taken_at=now,
    )


def seconds_left(series: Series, step: int, total: int) -> float | None:
    """Time for the remaining steps at the pace of the recent ones, evaluations included."""
    steps, times = series.steps[-RECENT_STEPS:], series.times[-RECENT_STEPS:]
    if total <= step or len(steps) < 2 or steps[-1] <= steps[0]:
        return None
    pace_s = float(times[-1] - times[0]) / float(steps[-1] - steps[0])
    return (total - step) * pace_s if np.isfinite(pace_s) and pace_s > 0 else None


def extreme(series: Series) -> Extreme:
    """Last and least value; non-finite ones are never the best."""
    if not len(series):
        return Extreme()
    finite = np.isfinite(series.values)
    last = float(series.values[-1])
    if not finite.any():
        return Extreme(last)
    at = int(np.argmin(np.where(finite, series.values, np.inf)))
    return Extreme(last, float(series.values[at]), int(series.steps[at]))


def step_times(reader: RunReader) -> StepTimes:
    """Step time over the recent steps."""
    values = reader.metrics.series("step_ms").values[-RECENT_STEPS:]
    values = values[np.isfinite(values)]
    if not len(values):
        return StepTimes()
    medians = ((name, reader.metrics.recent_median(f"{name}_ms")) for name in ("data", "transfer", "compute"))
    parts = tuple((name, value) for name, value in medians if value is not None)
    return StepTimes(float(np.median(values)), float(np.percentile(values, 95)), parts)
