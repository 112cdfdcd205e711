"""Series drawn into a grid of dots, and the dots turned into characters.

Row 0 is the top. A dot column summarises the points that fall into it by a stroke from their minimum to their
maximum, so a spike of one point among a million is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from needle_tui.widgets.chart_axis import Limits
from needle_tui.widgets.chart_buffer import Columns
from needle_tui.widgets.chart_picture import BLANK_STYLE, Row
from needle_tui.widgets.glyphs import GlyphSet

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_TALL = 1 << 20


@dataclass(frozen=True)
class Stroke:
    """The dots of one series: rows `top .. bottom` of each column (n,) where `drawn`."""

    top: Ints
    bottom: Ints
    drawn: Bools

    @property
    def dots(self) -> int:
        return len(self.drawn)


def line(columns: Columns, limits: Limits, dot_rows: int) -> Stroke:
    """A connected line; it breaks where a point between two columns cannot be drawn."""
    rows = _Rows(limits, dot_rows)
    top, bottom = rows.of(columns.high), rows.of(columns.low)
    drawn = np.isfinite(columns.low)
    linked = _bridge(columns, rows, top, bottom, drawn)
    _join(top, bottom, linked)
    return Stroke(_whole(top, dot_rows), _whole(bottom, dot_rows), drawn)


def extremes(columns: Columns, limits: Limits, dot_rows: int) -> tuple[Stroke, Stroke]:
    """The maxima and the minima of the columns, unconnected: a background behind a smoothed line."""
    rows = _Rows(limits, dot_rows)
    drawn = np.isfinite(columns.low)
    high, low = (_whole(rows.of(values), dot_rows) for values in (columns.high, columns.low))
    return Stroke(high, high, drawn), Stroke(low, low, drawn)


def dashed(stroke: Stroke, on: int, off: int) -> Stroke:
    """The stroke with only the first `on` of every `on + off` columns."""
    if not off:
        return stroke
    return Stroke(stroke.top, stroke.bottom, stroke.drawn & (np.arange(stroke.dots) % (on + off) < on))


class Canvas:
    """A grid of `width` x `height` cells: dots, the style that owns each cell, characters laid over."""

    def __init__(self, width: int, height: int, glyph_set: GlyphSet) -> None:
        self.width, self.height, self.glyphs = width, height, glyph_set
        self._bits = np.array(glyph_set.bits, np.int64)
        self._masks = np.zeros((height, width), np.int64)
        self._owners = np.full((height, width), ord(BLANK_STYLE), np.uint32)
        self._overlay = np.zeros((height, width), np.uint32)

    @property
    def dot_columns(self) -> int:
        return self.width * self.glyphs.dot_columns

    @property
    def dot_rows(self) -> int:
        return self.height * self.glyphs.dot_rows

    def draw(self, stroke: Stroke, style: str) -> None:
        """Add a stroke. The cells it touches become its own, so that lines stay clean where they cross."""
        y = np.arange(self.dot_rows)[:, None]
        dots = (y >= stroke.top) & (y <= stroke.bottom) & stroke.drawn
        shape = (self.height, self.glyphs.dot_rows, self.width, self.glyphs.dot_columns)
        masks = np.einsum("hrwc,rc->hw", dots.reshape(shape).astype(np.int64), self._bits)
        touched = masks > 0
        code = ord(style)
        mine = self._owners == code
        self._masks = np.where(touched, np.where(mine, self._masks | masks, masks), self._masks)
        self._owners[touched] = code

    def put(self, x: int, y: int, character: str, style: str, *, over: bool = True) -> None:
        """Lay a character of one cell over the dots; with `over` False only where nothing is drawn."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        if not over and (self._masks[y, x] or self._overlay[y, x]):
            return
        self._overlay[y, x] = ord(character)
        self._owners[y, x] = ord(style)

    def free(self, x: int, y: int, width: int) -> bool:
        """Whether nothing is drawn in `width` cells from `x`."""
        taken = self._masks[y, x : x + width] | self._overlay[y, x : x + width]
        return not bool(taken.any())

    def rows(self) -> list[Row]:
        """The cells as text and styles."""
        table = np.array([ord(character) for character in self.glyphs.cells], np.uint32)
        codes = np.where(self._overlay > 0, self._overlay, table[self._masks])
        return [Row(_text(codes[y]), _text(self._owners[y])) for y in range(self.height)]


class _Rows:
    """Values to dot rows, as floats so that lines can be interpolated before rounding."""

    def __init__(self, limits: Limits, dot_rows: int) -> None:
        self._low, self._span = limits.low, limits.high - limits.low
        self._last = dot_rows - 1

    def of(self, values: Floats) -> Floats:
        """Rows (n,) of values (n,), NaN for NaN; far outside the limits all rows are the same."""
        with np.errstate(over="ignore"):
            share = (values - self._low) / self._span
        return (1 - np.clip(share, -_TALL, _TALL)) * self._last


def _bridge(columns: Columns, rows: _Rows, top: Floats, bottom: Floats, drawn: Bools) -> Bools:
    """Fill empty columns between neighbours with a straight line, in place.

    Returns for each pair of columns (n - 1,) whether the line runs on from one to the next.
    """
    count = len(drawn)
    place, arrive, leave = _stations(columns, rows)
    linked = np.zeros(max(0, count - 1), np.bool_)
    if len(place) < 2:
        return linked
    joined = np.isfinite(leave[:-1]) & np.isfinite(arrive[1:])
    centres = np.arange(count) + 0.0
    left = np.clip(np.searchsorted(place, centres, side="right") - 1, 0, len(place) - 2)
    share = (centres - place[left]) / np.maximum(place[left + 1] - place[left], 1e-12)
    between = (columns.count == 0) & (share > 0) & (share < 1) & joined[left]
    with np.errstate(invalid="ignore"):
        row = leave[left] * (1 - share) + arrive[left + 1] * share
    top[between] = bottom[between] = row[between]
    drawn |= between
    middles = centres[:-1] + 0.5
    segment = np.searchsorted(place, middles, side="right") - 1
    inside = (segment >= 0) & (segment < len(joined))
    linked[inside] = joined[segment[inside]]
    return linked & drawn[:-1] & drawn[1:]


def _stations(columns: Columns, rows: _Rows) -> tuple[Floats, Floats, Floats]:
    """Where the line has points: columns, and the rows at which it arrives there and leaves."""
    filled = np.flatnonzero(columns.count)
    count = len(columns.count)
    place = filled.astype(np.float64)
    arrive, leave = rows.of(columns.first[filled]), rows.of(columns.last[filled])
    if columns.before is not None:
        place, arrive, leave = _with_neighbour(columns.before, count, rows, (place, arrive, leave), at=0)
    if columns.after is not None:
        place, arrive, leave = _with_neighbour(
            columns.after, count, rows, (place, arrive, leave), at=len(place)
        )
    return place, arrive, leave


def _with_neighbour(
    point: tuple[float, float], count: int, rows: _Rows, stations: tuple[Floats, Floats, Floats], *, at: int
) -> tuple[Floats, Floats, Floats]:
    share, value = point
    row = rows.of(np.array([value]))[0]
    place, arrive, leave = stations
    return np.insert(place, at, share * count - 0.5), np.insert(arrive, at, row), np.insert(leave, at, row)


def _join(top: Floats, bottom: Floats, linked: Bools) -> None:
    """Stretch linked neighbours to meet halfway, in place, so that a steep line has no holes."""
    with np.errstate(invalid="ignore"):
        falls = linked & (top[1:] > bottom[:-1])
        rises = linked & (bottom[1:] < top[:-1])
    down = (bottom[:-1] + top[1:]) / 2
    up = (top[:-1] + bottom[1:]) / 2
    new_bottom, new_top = bottom.copy(), top.copy()
    new_bottom[:-1][falls] = np.maximum(new_bottom[:-1], down)[falls]
    new_top[1:][falls] = np.minimum(new_top[1:], down)[falls]
    new_top[:-1][rises] = np.minimum(new_top[:-1], up)[rises]
    new_bottom[1:][rises] = np.maximum(new_bottom[1:], up)[rises]
    top[:], bottom[:] = new_top, new_bottom


def _whole(rows: Floats, dot_rows: int) -> Ints:
    """Dot rows as whole numbers; rows off the canvas stay off it, on their side."""
    return np.clip(np.rint(np.nan_to_num(rows, nan=-1.0)), -1, dot_rows).astype(np.int64)


def _text(codes: NDArray[np.uint32]) -> str:
    return np.ascontiguousarray(codes).astype("<u4").tobytes().decode("utf-32-le")
