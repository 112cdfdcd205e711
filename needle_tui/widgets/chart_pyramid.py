"""Minimum and maximum of any range of a long and growing array, at a cost that does not depend on its length.

They are kept over blocks of points, blocks of blocks, and so on; a range is put together from a few of those,
exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from needle_tui.widgets.chart_axis import LARGEST

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 32


class Growing:
    """A one-dimensional float64 array that grows at its end without being copied each time."""

    def __init__(self) -> None:
        self._room: Floats = np.empty(256, np.float64)
        self.length = 0

    @property
    def view(self) -> Floats:
        """What it holds now, (length,)."""
        return self._room[: self.length]

    def extend(self, values: Floats) -> None:
        """Append `values` (n,)."""
        needed = self.length + len(values)
        if needed > len(self._room):
            room = np.empty(max(needed, 2 * len(self._room)), np.float64)
            room[: self.length] = self.view
            self._room = room
        self._room[self.length : needed] = values
        self.length = needed

    def cut(self, length: int) -> None:
        """Forget all but the first `length`."""
        self.length = min(self.length, length)


class Pyramid:
    """Values (n,) with NaN for what is not drawn, and the minimum and maximum of any range of them."""

    def __init__(self) -> None:
        self.values = Growing()
        self._lows: list[Growing] = []
        self._highs: list[Growing] = []

    def extend(self, values: Floats) -> None:
        """Append `values` (n,); infinities become NaN, and what is beyond `LARGEST` is drawn there."""
        drawn = np.clip(values, -LARGEST, LARGEST)
        self.values.extend(np.where(np.isfinite(values), drawn, np.nan))
        low = high = self.values
        level = 0
        while low.length > BLOCK:
            if level == len(self._lows):
                self._lows.append(Growing())
                self._highs.append(Growing())
            _summarise(low, self._lows[level], np.fmin)
            _summarise(high, self._highs[level], np.fmax)
            low, high = self._lows[level], self._highs[level]
            level += 1

    def ranges(self, starts: Ints, stops: Ints) -> tuple[Floats, Floats]:
        """Minimum and maximum of `values[start:stop]` for each pair (n,); NaN where nothing is drawable."""
        low = np.full(len(starts), np.nan)
        high = np.full(len(starts), np.nan)
        first, last = starts.copy(), np.maximum(starts, stops)
        levels = [(self.values, self.values), *zip(self._lows, self._highs, strict=True)]
        for index, (lows, highs) in enumerate(levels):
            up, down = -(-first // BLOCK), last // BLOCK
            top = index + 1 == len(levels)
            whole = np.zeros(len(first), np.bool_) if top else up < down
            head_stop = np.where(whole, up * BLOCK, last)
            tail_start = np.where(whole, down * BLOCK, last)
            for begin, end in ((first, head_stop), (tail_start, last)):
                low = np.fmin(low, _gathered(lows.view, begin, end, np.fmin))
                high = np.fmax(high, _gathered(highs.view, begin, end, np.fmax))
            first, last = np.where(whole, up, 0), np.where(whole, down, 0)
        return low, high


def _summarise(finer: Growing, coarser: Growing, reduce: np.ufunc) -> None:
    """Bring a level up to date: its last block was perhaps incomplete, the rest is new."""
    coarser.cut(max(0, coarser.length - 1))
    fresh = finer.view[coarser.length * BLOCK :]
    whole = len(fresh) // BLOCK * BLOCK
    coarser.extend(_reduced(fresh[:whole].reshape(-1, BLOCK), reduce))
    if whole < len(fresh):
        coarser.extend(_reduced(fresh[None, whole:], reduce))


def _gathered(values: Floats, starts: Ints, stops: Ints, reduce: np.ufunc) -> Floats:
    """`reduce` over each `values[start:stop]`; ranges are short (under two blocks, or a top level)."""
    longest = int((stops - starts).max(initial=0))
    if longest <= 0:
        return np.full(len(starts), np.nan)
    places = starts[:, None] + np.arange(longest)
    taken = values[np.minimum(places, len(values) - 1)]
    inside = places < stops[:, None]
    return _reduced(np.where(inside, taken, np.nan), reduce)


def _reduced(rows: Floats, reduce: np.ufunc) -> Floats:
    """`reduce` over axis 1; a row of NaN alone is NaN, and no cause for a warning."""
    with np.errstate(invalid="ignore"):
        result: Floats = reduce.reduce(rows, axis=1)
    return result
