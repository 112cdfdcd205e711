"""The points of one series, in order of x, summarised in the columns of a chart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from needle_tui.widgets.chart_axis import LARGEST
from needle_tui.widgets.chart_pyramid import Floats, Growing, Ints, Pyramid
from needle_tui.widgets.chart_smoothing import Smoother


@dataclass(frozen=True)
class Columns:
    """A window of a series in columns (n,), in the axis's numbers (decimal logarithms on a log axis).

    `count` points lie in each; `first`, `last`, `low`, `high` are NaN where the point, or all of them, cannot
    be drawn; `bad` counts the non-finite ones and `hidden` those a log axis cannot show. `before` and `after`
    are the neighbours outside the window as (x share, value), where there are any.
    """

    count: Ints
    first: Floats
    last: Floats
    low: Floats
    high: Floats
    bad: Ints
    hidden: Ints
    before: tuple[float, float] | None
    after: tuple[float, float] | None


class SeriesBuffer:
    """Points (x, y) sorted by x, with their smoothed values, ready to be summarised in columns."""

    def __init__(self) -> None:
        self.smoothing = 0.0
        self.clear()

    def clear(self) -> None:
        """Forget all points; the smoothing stays."""
        self.x = Growing()
        self.y = Growing()
        self._smooth = Growing()
        self._smoother = Smoother(self.smoothing)
        self._bad = Growing()
        self._nonpositive = Growing()
        self._pyramids: dict[tuple[bool, bool], Pyramid] = {}

    def __len__(self) -> int:
        return self.x.length

    @property
    def first_x(self) -> float:
        """The least x; there must be points."""
        return float(self.x.view[0])

    @property
    def last_x(self) -> float:
        """The greatest x; there must be points."""
        return float(self.x.view[-1])

    def reading(self, x: float | None) -> tuple[float, float]:
        """The point (x, value) nearest to `x`, the last one for None; there must be points."""
        index = None if x is None else self.nearest(x)
        index = len(self) - 1 if index is None else index
        return float(self.x.view[index]), float(self.y.view[index])

    @property
    def bad_count(self) -> int:
        """Points whose value is NaN or infinite."""
        return self._bad.length

    @property
    def nonpositive_count(self) -> int:
        """Finite points that a log axis cannot show."""
        return self._nonpositive.length

    def extend(self, x: ArrayLike, y: ArrayLike) -> None:
        """Append points; those whose x is not finite are dropped, and x out of order is put in order."""
        xs, ys = _points(x, y)
        if len(xs) == 0:
            return
        if np.any(np.diff(xs) < 0) or (self.x.length and xs[0] < self.x.view[-1]):
            self._sort_in(xs, ys)
        else:
            self._append(xs, ys)

    def set_smoothing(self, smoothing: float) -> None:
        """Weight of the past in the exponential moving average, 0 (none) up to but not including 1."""
        if smoothing == self.smoothing:
            return
        self.smoothing = smoothing
        self._smoother = Smoother(smoothing)
        self._smooth = Growing()
        if smoothing:
            self._smooth.extend(self._smoother.extend(self.y.view))
        self._pyramids = {key: made for key, made in self._pyramids.items() if not key[1]}

    def smoothed(self) -> Floats:
        """The moving average at each point (n,); the values themselves without smoothing."""
        return self._smooth.view if self.smoothing else self.y.view

    def columns(self, low: float, high: float, count: int, *, log: bool, smooth: bool) -> Columns:
        """The window `low .. high` of x in `count` columns of equal width; the last one includes `high`."""
        xs = self.x.view
        edges = np.linspace(low, high, count + 1)
        places = np.searchsorted(xs, edges, side="left")
        places[-1] = np.searchsorted(xs, high, side="right")
        starts, stops = places[:-1], places[1:]
        pyramid = self._pyramid(log, smooth and self.smoothing > 0)
        values = pyramid.values.view
        lows, highs = pyramid.ranges(starts, stops)
        filled = stops > starts
        return Columns(
            count=stops - starts,
            first=_at(values, starts, filled),
            last=_at(values, stops - 1, filled),
            low=lows,
            high=highs,
            bad=_counts(self._bad.view, places),
            hidden=_counts(self._nonpositive.view, places) if log else np.zeros(count, np.int64),
            before=self._neighbour(values, int(places[0]) - 1, low, high),
            after=self._neighbour(values, int(places[-1]), low, high),
        )

    def nearest(self, x: float) -> int | None:
        """Index of the point nearest to `x`, None without points."""
        xs = self.x.view
        if not len(xs):
            return None
        right = int(np.searchsorted(xs, x))
        if right == 0:
            return 0
        if right == len(xs):
            return right - 1
        return right if xs[right] - x < x - xs[right - 1] else right - 1

    def stepped(self, x: float, distance: float) -> float | None:
        """The x of a point about `distance` from `x`, and at least one point further; None without points."""
        here, there = self.nearest(x), self.nearest(x + distance)
        if here is None or there is None:
            return None
        if here == there and distance:
            there = min(max(here + (1 if distance > 0 else -1), 0), len(self) - 1)
        return float(self.x.view[there])

    def _neighbour(self, values: Floats, index: int, low: float, high: float) -> tuple[float, float] | None:
        if not 0 <= index < len(values) or not np.isfinite(values[index]):
            return None
        return (float(self.x.view[index]) - low) / (high - low), float(values[index])

    def _append(self, xs: Floats, ys: Floats) -> None:
        start = self.x.length
        self.x.extend(xs)
        self.y.extend(ys)
        self._bad.extend(start + np.flatnonzero(~np.isfinite(ys)).astype(np.float64))
        self._nonpositive.extend(start + np.flatnonzero(np.isfinite(ys) & (ys <= 0)).astype(np.float64))
        smooth = self._smoother.extend(ys) if self.smoothing else ys
        if self.smoothing:
            self._smooth.extend(smooth)
        for (log, of_smooth), pyramid in self._pyramids.items():
            pyramid.extend(_scaled(smooth if of_smooth else ys, log))

    def _sort_in(self, xs: Floats, ys: Floats) -> None:
        """Build everything again in order; rare, so simple."""
        all_x = np.concatenate([self.x.view, xs])
        all_y = np.concatenate([self.y.view, ys])
        order = np.argsort(all_x, kind="stable")
        self.clear()
        self._append(all_x[order], all_y[order])

    def _pyramid(self, log: bool, smooth: bool) -> Pyramid:
        """Made when first asked for, then kept up to date."""
        key = (log, smooth)
        if key not in self._pyramids:
            made = Pyramid()
            made.extend(_scaled(self._smooth.view if smooth else self.y.view, log))
            self._pyramids[key] = made
        return self._pyramids[key]


def _points(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two float arrays of the same length, without the points that have no place on the x axis."""
    xs = np.atleast_1d(np.asarray(x, np.float64)).ravel()
    ys = np.atleast_1d(np.asarray(y, np.float64)).ravel()
    length = min(len(xs), len(ys))
    xs, ys = xs[:length], ys[:length]
    placed = np.abs(xs) <= LARGEST
    return (xs, ys) if placed.all() else (xs[placed], ys[placed])


def _scaled(values: Floats, log: bool) -> Floats:
    """Values in the axis's numbers; NaN for what a log axis cannot show."""
    if not log:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log10(values), np.nan)


def _at(values: Floats, places: Ints, filled: NDArray[np.bool_]) -> Floats:
    """`values[place]` where filled, else NaN."""
    if not len(values):
        return np.full(len(places), np.nan)
    return np.where(filled, values[np.clip(places, 0, len(values) - 1)], np.nan)


def _counts(indices: Floats, places: Ints) -> Ints:
    """How many of the sorted `indices` fall between consecutive `places`."""
    if not len(indices):
        return np.zeros(len(places) - 1, np.int64)
    return np.diff(np.searchsorted(indices, places)).astype(np.int64)
