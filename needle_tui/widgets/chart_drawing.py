"""A whole chart as a picture: header, values, axes, marks and cursor. A pure function of what is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from needle_tui.widgets import chart_look as look
from needle_tui.widgets.chart_axis import AxisKind, Limits, Tick, value_limits, value_ticks, x_ticks
from needle_tui.widgets.chart_buffer import Columns, SeriesBuffer
from needle_tui.widgets.chart_canvas import Canvas, dashed, extremes, line
from needle_tui.widgets.chart_frame import value_axis, x_axis_labels, x_axis_line
from needle_tui.widgets.chart_header import Entry, empty_picture, header_row
from needle_tui.widgets.chart_look import SeriesLook
from needle_tui.widgets.chart_picture import Picture, Row, cells
from needle_tui.widgets.glyphs import GlyphSet

_GUTTER_CELLS = 8
"""Room for value labels and the axis; it grows only for labels that are longer."""

_NARROW, _LOW = 30, 8


@dataclass(frozen=True)
class Series:
    """One series of a chart and how it looks."""

    name: str
    points: SeriesBuffer
    look: SeriesLook


@dataclass(frozen=True)
class Mark:
    """A vertical line at `x`, with a word."""

    x: float
    label: str = ""


@dataclass(frozen=True)
class Chart:
    """Everything a picture of a chart depends on. `x` are the limits of the window."""

    series: tuple[Series, ...]
    x: Limits
    glyphs: GlyphSet
    title: str = ""
    x_name: str = "step"
    x_kind: AxisKind = "count"
    log: bool = False
    marks: tuple[Mark, ...] = ()
    cursor: float | None = None
    empty_text: str = "no points yet"


@dataclass(frozen=True)
class _Layout:
    """Where things are: the plot is `width` x `height` cells, right of `gutter`, below `header` rows."""

    gutter: int
    width: int
    height: int
    header: int
    bad_row: bool
    axis_line: bool
    axis_labels: bool


@dataclass
class _Drawn:
    """The columns of each series, first the points themselves, then what is drawn as the line."""

    raw: list[Columns] = field(default_factory=list)
    lines: list[Columns] = field(default_factory=list)


def draw(chart: Chart, width: int, height: int) -> Picture:
    """The chart in `width` x `height` cells."""
    if width < 1 or height < 1:
        return Picture(max(0, width), ())
    entries = [_entry(chart, one) for one in chart.series if len(one.points)]
    if not entries:
        return empty_picture(chart.title, chart.empty_text, width, height)
    layout, limits, ticks, drawn = _planned(chart, width, height)
    canvas = Canvas(layout.width, layout.height, chart.glyphs)
    _draw_series(canvas, chart, drawn, limits)
    _draw_marks(canvas, chart)
    _draw_cursor(canvas, chart, drawn, limits)
    rows = [header_row(chart.title, _notes(chart), entries, chart.glyphs, width)] * layout.header
    labels = {_cell_row(tick.at, limits, canvas): tick.label for tick in ticks}
    rows += value_axis(canvas.rows(), labels, layout.gutter, chart.glyphs)
    if layout.bad_row:
        rows.append(_bad_row(chart, drawn, layout))
    rows += _x_axis(chart, layout)
    return Picture(width, tuple(rows[:height]))


def _planned(chart: Chart, width: int, height: int) -> tuple[_Layout, Limits, list[Tick], _Drawn]:
    """Layout, limits and ticks of the value axis. The gutter depends on labels, the labels on the values."""
    layout = _layout(chart, width, height, 0 if width < _NARROW else _GUTTER_CELLS)
    wanted = max(2, (layout.height + 1) // 4)
    for _ in range(2):
        drawn = _columns(chart, layout.width * chart.glyphs.dot_columns)
        low, high = _value_range(drawn)
        limits = value_limits(low, high, log=chart.log, ticks=wanted)
        ticks = value_ticks(limits, wanted + 1)
        longest = max((len(tick.label) for tick in ticks), default=0) + 1
        if not layout.gutter or longest <= layout.gutter:
            break
        layout = _layout(chart, width, height, min(longest, width // 2))
    return layout, limits, ticks, drawn


def _layout(chart: Chart, width: int, height: int, gutter: int) -> _Layout:
    header = int(height >= 3)
    bad_row = height >= 5 and any(_unseen_count(one, chart.log) for one in chart.series)
    axis_labels = height >= 4
    axis_line = height >= _LOW
    used = header + bad_row + axis_labels + axis_line
    return _Layout(gutter, max(1, width - gutter), height - used, header, bad_row, axis_line, axis_labels)


def _unseen_count(one: Series, log: bool) -> int:
    """Points that have no place on the value axis."""
    return one.points.bad_count + (one.points.nonpositive_count if log else 0)


def _columns(chart: Chart, count: int) -> _Drawn:
    drawn = _Drawn()
    for one in chart.series:
        columns = one.points.columns(chart.x.low, chart.x.high, count, log=chart.log, smooth=False)
        drawn.raw.append(columns)
        if one.points.smoothing:
            columns = one.points.columns(chart.x.low, chart.x.high, count, log=chart.log, smooth=True)
        drawn.lines.append(columns)
    return drawn


def _value_range(drawn: _Drawn) -> tuple[float, float]:
    """Least and greatest drawable value in the window; infinite the wrong way round when there is none."""
    low, high = float("inf"), float("-inf")
    for columns in (*drawn.raw, *drawn.lines):
        if np.isfinite(columns.low).any():
            low = min(low, float(np.nanmin(columns.low)))
            high = max(high, float(np.nanmax(columns.high)))
    return low, high


def _draw_series(canvas: Canvas, chart: Chart, drawn: _Drawn, limits: Limits) -> None:
    """Backgrounds first, then the lines, then what stands on them."""
    for one, raw in zip(chart.series, drawn.raw, strict=True):
        if one.points.smoothing:
            for stroke in extremes(raw, limits, canvas.dot_rows):
                canvas.draw(stroke, look.RAW)
    for one, columns in zip(chart.series, drawn.lines, strict=True):
        stroke = line(columns, limits, canvas.dot_rows)
        canvas.draw(dashed(stroke, one.look.on, one.look.off), one.look.style)
    for one, columns in zip(chart.series, drawn.lines, strict=True):
        _draw_markers(canvas, one.look, columns, limits)


def _draw_markers(canvas: Canvas, series_look: SeriesLook, columns: Columns, limits: Limits) -> None:
    """A marker at each point where there are few, else here and there, and always at the last."""
    if not series_look.marker:
        return
    glyph = canvas.glyphs.point if series_look.marker == "point" else series_look.marker
    filled = np.flatnonzero(np.isfinite(columns.last) & (columns.count > 0))
    places = {int(column) // canvas.glyphs.dot_columns: int(column) for column in filled}
    few = len(places) * 4 <= canvas.width
    last = max(places, default=-1)
    for x, column in places.items():
        if few or x == last or x % series_look.every == series_look.phase % series_look.every:
            y = _cell_row(float(columns.last[column]), limits, canvas)
            canvas.put(x, y, glyph, series_look.style)


def _draw_marks(canvas: Canvas, chart: Chart) -> None:
    for mark in chart.marks:
        x = _cell_column(mark.x, chart.x, canvas.width)
        if x is None:
            continue
        label = cells(mark.label)
        if x + 1 + len(label) <= canvas.width and canvas.free(x + 1, 0, len(label)):
            for offset, character in enumerate(label, start=1):
                canvas.put(x + offset, 0, character, look.MARK)
        for y in range(canvas.height):
            canvas.put(x, y, chart.glyphs.mark, look.MARK, over=False)


def _draw_cursor(canvas: Canvas, chart: Chart, drawn: _Drawn, limits: Limits) -> None:
    """A vertical line, and a point on each series where it has a value in that column of cells."""
    x = None if chart.cursor is None else _cell_column(chart.cursor, chart.x, canvas.width)
    if x is None:
        return
    for y in range(canvas.height):
        canvas.put(x, y, chart.glyphs.cursor, look.CURSOR, over=False)
    dots = canvas.glyphs.dot_columns
    for columns in drawn.lines:
        values = columns.last[x * dots : (x + 1) * dots]
        seen = values[np.isfinite(values)]
        if len(seen):
            canvas.put(x, _cell_row(float(seen[-1]), limits, canvas), chart.glyphs.cursor_point, look.CURSOR)


def _cell_row(value: float, limits: Limits, canvas: Canvas) -> int:
    share = min(max(limits.share(value), 0.0), 1.0)
    return round((1 - share) * (canvas.dot_rows - 1)) // canvas.glyphs.dot_rows


def _cell_column(x: float, limits: Limits, width: int) -> int | None:
    """The column of cells that shows `x`; None outside the window."""
    share = limits.share(x)
    if not 0 <= share <= 1:
        return None
    return min(int(share * width), width - 1)


def _bad_row(chart: Chart, drawn: _Drawn, layout: _Layout) -> Row:
    """Where points have no place on the value axis: non-finite ones, and those a log axis cannot show."""
    dots = chart.glyphs.dot_columns
    text = [" "] * layout.width
    for columns in drawn.raw:
        for counts, glyph in ((columns.hidden, chart.glyphs.hidden), (columns.bad, chart.glyphs.bad)):
            for x in np.flatnonzero(counts.reshape(layout.width, dots).sum(axis=1)):
                text[int(x)] = glyph
    name = "non-fin." if any(one.points.bad_count for one in chart.series) else "<= 0"
    gutter = name[: layout.gutter].ljust(layout.gutter)
    return Row(gutter + "".join(text), look.BAD * (layout.gutter + layout.width))


def _x_axis(chart: Chart, layout: _Layout) -> list[Row]:
    """The axis line and its labels, as far as there is room for them."""
    ticks = x_ticks(chart.x, max(2, layout.width // 14), chart.x_kind)
    places = [(_cell_column(tick.at, chart.x, layout.width) or 0, tick.label) for tick in ticks]
    rows = []
    if layout.axis_line:
        rows.append(x_axis_line([x for x, _ in places], layout.gutter, layout.width, chart.glyphs))
    if layout.axis_labels:
        shifted = [(layout.gutter + x, label) for x, label in places]
        rows.append(x_axis_labels(shifted, cells(chart.x_name), layout.gutter, layout.gutter + layout.width))
    return rows


def _notes(chart: Chart) -> list[tuple[str, str]]:
    """What qualifies the picture, as (text, style): the scale, the smoothing, what is not seen."""
    notes = []
    if chart.log:
        notes.append(("log", look.LABEL))
    smoothing = max((one.points.smoothing for one in chart.series), default=0.0)
    if smoothing:
        notes.append((f"smooth {smoothing:g}", look.LABEL))
    bad = sum(one.points.bad_count for one in chart.series)
    if bad:
        notes.append((f"{bad:,} non-finite", look.BAD))
    hidden = sum(one.points.nonpositive_count for one in chart.series) if chart.log else 0
    if hidden:
        notes.append((f"{hidden:,} not above 0", look.BAD))
    return notes


def _entry(chart: Chart, one: Series) -> Entry:
    """The series in the header: its last value, or the one at the cursor."""
    points = one.points
    index = len(points) - 1 if chart.cursor is None else points.nearest(chart.cursor)
    assert index is not None, "a series without points has no entry"
    smooth = float(points.smoothed()[index]) if points.smoothing else None
    at = None if chart.cursor is None else float(points.x.view[index])
    return Entry(one.name, one.look, float(points.y.view[index]), smooth, at, chart.x_kind)
