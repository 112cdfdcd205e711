"""What stands around a plot: value labels and axis at its left, the x axis below it."""

from __future__ import annotations

from needle_tui.widgets import chart_look as look
from needle_tui.widgets.chart_picture import Row
from needle_tui.widgets.glyphs import GlyphSet


def value_axis(plot: list[Row], labels: dict[int, str], gutter: int, glyph_set: GlyphSet) -> list[Row]:
    """The plot's rows behind `labels` (by row) and the axis, which take `gutter` cells."""
    if not gutter:
        return plot
    width = gutter - 1
    rows = []
    for y, cells_of_row in enumerate(plot):
        label = labels.get(y, "")[:width].rjust(width)
        axis = glyph_set.tick if y in labels else glyph_set.axis
        text = label + axis + cells_of_row.text
        rows.append(Row(text, look.LABEL * width + look.AXIS + cells_of_row.styles))
    return rows


def x_axis_line(columns: list[int], gutter: int, width: int, glyph_set: GlyphSet) -> Row:
    """The line below a plot of `width` cells, with a tick at each of its `columns`."""
    text = list(glyph_set.line * width)
    for x in columns:
        text[x] = glyph_set.line_tick
    corner = " " * (gutter - 1) + glyph_set.corner if gutter else ""
    return Row(corner + "".join(text), look.AXIS * (gutter + width))


def x_axis_labels(places: list[tuple[int, str]], name: str, gutter: int, width: int) -> Row:
    """Labels centred on their cells, none touching another; the axis's name is in the gutter if it fits."""
    text = [" "] * width
    free_from, end = 0, width
    if len(name) < gutter:
        text[: len(name)] = name
        free_from = len(name) + 1
    elif len(name) + 12 < width:
        text[width - len(name) :] = name
        end = width - len(name) - 1
    for x, label in places:
        start = min(max(0, x - len(label) // 2), end - len(label))
        if start < free_from:
            continue
        text[start : start + len(label)] = label
        free_from = start + len(label) + 2
    return Row("".join(text), look.LABEL * width)
