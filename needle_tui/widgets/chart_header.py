"""The first row of a chart: its title, and each series with its sample, name and value."""

from __future__ import annotations

from dataclasses import dataclass

from needle.units import duration_text, number_text
from needle_tui.widgets import chart_look as look
from needle_tui.widgets.chart_axis import AxisKind
from needle_tui.widgets.chart_look import SeriesLook
from needle_tui.widgets.chart_picture import BLANK_STYLE, Picture, Row, cells, row
from needle_tui.widgets.glyphs import GlyphSet

_VALUE_CELLS = 7
"""Wide enough for most values, so that the row does not move as they change."""

Piece = tuple[str, str]
"""Text of one character a cell, and its one-letter style."""


@dataclass(frozen=True)
class Entry:
    """A series in the header. `smooth` is its smoothed value; `at` the x of the point read by the cursor."""

    name: str
    look: SeriesLook
    value: float
    smooth: float | None = None
    at: float | None = None
    x_kind: AxisKind = "count"


def header_row(title: str, notes: list[Piece], entries: list[Entry], glyph_set: GlyphSet, width: int) -> Row:
    """The row in `width` cells; what does not fit goes in this order: notes, names, title, further series."""
    left: list[Piece] = [(cells(title), look.TITLE)] if title else []
    named = [_entry_pieces(entry, glyph_set, named=True) for entry in entries]
    bare = [_entry_pieces(entry, glyph_set, named=False) for entry in entries]
    noted = [*left, *notes]
    for pieces, series in ((noted, named), (left, named), (left, bare), ([], bare)):
        right = _joined(series, "  ")
        if _length(_spaced(pieces)) + _length(right) + (2 if pieces else 0) <= width:
            return _laid(_spaced(pieces), right, width)
    return _laid([], _joined(_as_many(bare, width), "  "), width)


def empty_picture(title: str, text: str, width: int, height: int) -> Picture:
    """A chart without points: its title, and in the middle what there is to say."""
    rows = [row("", look.EMPTY, width)] * height
    said = cells(text)[:width]
    rows[height // 2] = row(" " * ((width - len(said)) // 2) + said, look.EMPTY, width)
    if height > 1:
        rows[0] = row(cells(title), look.TITLE, width)
    return Picture(width, tuple(rows))


def _entry_pieces(entry: Entry, glyph_set: GlyphSet, *, named: bool) -> list[Piece]:
    pieces = [(_sample(entry.look, glyph_set), entry.look.style)]
    if named:
        pieces.append((f" {cells(entry.name)}", look.LABEL))
    pieces.append((f" {number_text(entry.value):>{_VALUE_CELLS}}", entry.look.style))
    if entry.smooth is not None:
        pieces.append((f" ~{number_text(entry.smooth)}", look.LABEL))
    if entry.at is not None and named:
        where = duration_text(entry.at) if entry.x_kind == "time" else f"{entry.at:,.0f}"
        pieces.append((f" @{where}", look.CURSOR))
    return pieces


def _sample(series_look: SeriesLook, glyph_set: GlyphSet) -> str:
    """How the series is drawn, in two cells."""
    marker = glyph_set.point if series_look.marker == "point" else series_look.marker
    if not marker:
        return glyph_set.line * 2
    return marker + glyph_set.line


def _joined(groups: list[list[Piece]], space: str) -> list[Piece]:
    joined: list[Piece] = []
    for group in groups:
        if joined:
            joined.append((space, BLANK_STYLE))
        joined.extend(group)
    return joined


def _spaced(pieces: list[Piece]) -> list[Piece]:
    return _joined([[piece] for piece in pieces], "  ")


def _as_many(groups: list[list[Piece]], width: int) -> list[list[Piece]]:
    """The first groups that fit."""
    kept: list[list[Piece]] = []
    for group in groups:
        if _length(_joined([*kept, group], "  ")) > width:
            break
        kept.append(group)
    return kept


def _laid(left: list[Piece], right: list[Piece], width: int) -> Row:
    """`left` at the left end, `right` at the right end."""
    space = max(0, width - _length(left) - _length(right))
    pieces = [*left, (" " * space, BLANK_STYLE), *right]
    text = "".join(text for text, _ in pieces)[:width]
    styles = "".join(style * len(text) for text, style in pieces)[:width]
    return Row(text.ljust(width), styles.ljust(width, BLANK_STYLE))


def _length(pieces: list[Piece]) -> int:
    return sum(len(text) for text, _ in pieces)
