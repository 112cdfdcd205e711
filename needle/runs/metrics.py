"""The metrics of a run as growing numpy columns, whatever attempts and names its lines bring."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from needle.runs.columns import Column, Floats, Growing, Integers

_MOST_NAMES = 1000


@dataclass(frozen=True)
class Series:
    """One metric over the run: read-only arrays (N,) that later reading never changes.

    `steps` never decrease. `times` are training seconds across attempts, without the time whose points
    were superseded. `tokens` are the useful tokens so far, the last ones known. `generation` changes when
    a resumed attempt superseded points: until then a later series begins with this one.
    """

    name: str
    steps: Integers
    values: Floats
    times: Floats
    tokens: Floats
    generation: int

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class AttemptStart:
    """The first step that an attempt reported."""

    attempt: int
    step: int


@dataclass(frozen=True)
class MetricBlock:
    """Decoded lines, in file order: `steps`, `attempts` (N,) int64, `times` (N,) float64, NaN where absent.

    `columns` holds for each metric its row numbers (M,), None for every row, and its values (M,).
    """

    steps: Integers
    attempts: Integers
    times: Floats
    columns: dict[str, tuple[Integers | None, Floats]]

    def __len__(self) -> int:
        return len(self.steps)

    def part(self, start: int, stop: int) -> MetricBlock:
        """Rows `start` to `stop`."""
        columns: dict[str, tuple[Integers | None, Floats]] = {}
        for name, (rows, values) in self.columns.items():
            if rows is None:
                columns[name] = (None, values[start:stop])
                continue
            low, high = np.searchsorted(rows, (start, stop))
            if high > low:
                columns[name] = (rows[low:high] - start, values[low:high])
        return MetricBlock(self.steps[start:stop], self.attempts[start:stop], self.times[start:stop], columns)


class MetricTable:
    """Every metric of a run. A resumed attempt supersedes earlier points from its first step on."""

    def __init__(self) -> None:
        self.generation = 0
        self.attempts: tuple[AttemptStart, ...] = ()
        self._steps = Growing(np.dtype(np.int64))
        self._times = Growing(np.dtype(np.float64))
        self._tokens = Growing(np.dtype(np.float64))
        self._columns: dict[str, Column] = {}
        self._sorted = True
        self._attempt: int | None = None
        self._time_offset = 0.0

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def last_step(self) -> int:
        """The step of the last line; 0 before the first."""
        return int(self._steps.peek()[-1]) if len(self) else 0

    @property
    def attempt(self) -> int:
        """The attempt of the last line; 0 before the first."""
        return self._attempt or 0

    def names(self) -> tuple[str, ...]:
        """The metrics that have points, in the order they first appeared."""
        return tuple(name for name, column in self._columns.items() if len(column.values))

    def series(self, name: str) -> Series:
        """One metric; empty when it has no points."""
        column = self._columns.get(name) or Column(0)
        rows = column.row_numbers()
        values = column.values.view()
        steps, times, tokens = self._steps.view()[rows], self._times.view()[rows], self._tokens.view()[rows]
        if not self._sorted and np.any(np.diff(steps) < 0):
            order = np.argsort(steps, kind="stable")
            steps, values, times, tokens = steps[order], values[order], times[order], tokens[order]
        steps.flags.writeable = times.flags.writeable = tokens.flags.writeable = False
        values.flags.writeable = False
        return Series(name, steps, values, times, tokens, self.generation)

    def last(self, name: str) -> float | None:
        """The last value of a metric; None without one."""
        column = self._columns.get(name)
        return float(column.values.peek()[-1]) if column and len(column.values) else None

    def recent_median(self, name: str, count: int = 50) -> float | None:
        """The median of the last `count` finite values; None without one."""
        column = self._columns.get(name)
        recent = column.values.peek()[-count:] if column else np.empty(0)
        finite = recent[np.isfinite(recent)]
        return float(np.median(finite)) if len(finite) else None

    def restart(self) -> None:
        """The file begins anew: its lines supersede like those of a new attempt."""
        self._attempt = None

    def append(self, block: MetricBlock) -> None:
        """Add decoded lines, splitting them where the attempt changes."""
        if not len(block):
            return
        changes = np.flatnonzero(np.diff(block.attempts)) + 1
        edges = [0, *changes.tolist(), len(block)]
        for start, stop in pairwise(edges):
            self._append_attempt(block if len(edges) == 2 else block.part(start, stop))

    def _append_attempt(self, block: MetricBlock) -> None:
        attempt = int(block.attempts[0])
        if self._attempt is not None and attempt < self._attempt:
            return  # late words of a process whose attempt was superseded
        if attempt != self._attempt:
            self._begin_attempt(attempt, int(block.steps[0]))
        first_row = len(self)
        follows = not first_row or self.last_step <= int(block.steps[0])
        self._sorted = self._sorted and follows and bool(np.all(np.diff(block.steps) >= 0))
        self._steps.extend(block.steps)
        self._times.extend(_filled(block.times + self._time_offset, self._times, self._time_offset))
        self._tokens.extend(_filled(_dense(block, "tokens"), self._tokens, 0.0))
        for name, (rows, values) in block.columns.items():
            if name not in self._columns and len(self._columns) < _MOST_NAMES:
                self._columns[name] = Column(first_row)
            if name in self._columns:
                self._columns[name].append(first_row, rows, values)

    def _begin_attempt(self, attempt: int, step: int) -> None:
        self._supersede(step)
        self._attempt = attempt
        self._time_offset = float(self._times.peek()[-1]) if len(self) else 0.0
        earlier = tuple(start for start in self.attempts if start.step < step)
        self.attempts = (*earlier, AttemptStart(attempt, step))

    def _supersede(self, step: int) -> None:
        """Drop every point from `step` on."""
        steps = self._steps.peek()
        mask = steps < step
        count = int(np.count_nonzero(mask))
        if count == len(steps):
            return
        self.generation += 1
        parts: list[Growing[np.int64] | Growing[np.float64] | Column] = [
            self._steps,
            self._times,
            self._tokens,
        ]
        for part in [*parts, *self._columns.values()]:
            if self._sorted:
                part.cut(count)
            else:
                part.keep(mask)


def _dense(block: MetricBlock, name: str) -> Floats:
    """A column with NaN in the rows that lack it."""
    dense = np.full(len(block), np.nan)
    if name in block.columns:
        rows, values = block.columns[name]
        dense[slice(None) if rows is None else rows] = values
    return dense


def _filled(values: Floats, before: Growing[np.float64], otherwise: float) -> Floats:
    """NaN replaced by the last value known, at first by the last one in `before`."""
    known = ~np.isnan(values)
    if known.all():
        return values
    first = float(before.peek()[-1]) if len(before) else otherwise
    places = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return np.where(places >= 0, values[places], first)
