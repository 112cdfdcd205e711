"""A curve in one row of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from needle_tui.widgets.glyphs import GlyphSet, glyphs


def sparkline_text(values: Sequence[float], width: int, glyph_set: GlyphSet | None = None) -> str:
    """`values` in exactly `width` cells, from the least value at the bottom to the greatest at the top.

    A cell stands for the mean of its values, but the greatest and the least of all show even where they are
    single points. Non-finite values are left out; a cell of nothing else is marked.
    """
    shapes = glyph_set or glyphs()
    finite = [float(value) for value in values if math.isfinite(value)]
    count = min(width, len(values))
    if count < 1:
        return " " * max(0, width)
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    drawn = "".join(_cell(_part(values, index, count), low, high, shapes) for index in range(count))
    return drawn.ljust(width)


def _part(values: Sequence[float], index: int, count: int) -> list[float]:
    """The finite values of one of `count` equal parts."""
    part = values[index * len(values) // count : (index + 1) * len(values) // count]
    return [float(value) for value in part if math.isfinite(value)]


def _cell(part: list[float], low: float, high: float, shapes: GlyphSet) -> str:
    if not part:
        return shapes.bad
    top = len(shapes.levels) - 1
    span = high / 2 - low / 2
    if span <= 0:
        return shapes.levels[top // 2]
    value = _spoken_for(part, low, high)
    return shapes.levels[min(top, round((value / 2 - low / 2) / span * top))]


def _spoken_for(part: list[float], low: float, high: float) -> float:
    """The value that stands for a part: an extreme of the whole where it holds one, else the mean."""
    if high in part:
        return high
    if low in part:
        return low
    return sum(value / len(part) for value in part)
