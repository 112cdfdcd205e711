"""A chart or log pane as plain rows of characters, and what differs between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from rich.cells import get_character_cell_size

PLACEHOLDER = "\0"
"""Stands in a row for the second cell of a character two cells wide."""

BLANK_STYLE = " "
_MERGE_GAP_CELLS = 16
"""Moving the terminal's cursor and setting its colours again costs about as much as this many cells."""


class Row(NamedTuple):
    """One row: a character and a one-letter style for each cell; both strings have the row's width."""

    text: str
    styles: str


class Span(NamedTuple):
    """Cells `x .. x + width - 1` of row `y`."""

    x: int
    y: int
    width: int


@dataclass(frozen=True)
class Picture:
    """Rows of one width, top to bottom."""

    width: int
    rows: tuple[Row, ...]

    def text(self) -> str:
        """The picture without its styles, for people and tests."""
        return "\n".join(visible(row.text).rstrip() for row in self.rows)


EMPTY = Picture(0, ())


def cells(text: str) -> str:
    """`text` with one character a cell: wide ones followed by a placeholder, those without width left out."""
    if text.isascii():
        return text
    pieces = []
    for character in text:
        size = get_character_cell_size(character)
        if size:
            pieces.append(character + PLACEHOLDER * (size - 1))
    return "".join(pieces)


def visible(text: str) -> str:
    """The text of a row as it is printed."""
    return text.replace(PLACEHOLDER, "") if PLACEHOLDER in text else text


def row(text: str, style: str, width: int) -> Row:
    """A row of one style, cut or padded to `width` cells."""
    body = text[:width]
    if text[width : width + 1] == PLACEHOLDER:
        body = body[:-1]
    return Row(body.ljust(width), (style * len(body)).ljust(width, BLANK_STYLE))


def runs(one: Row) -> list[tuple[str, str]]:
    """A row as (text, style) pieces, each of one style."""
    pieces = []
    start = 0
    for style, group in groupby(one.styles):
        stop = start + sum(1 for _ in group)
        pieces.append((visible(one.text[start:stop]), style))
        start = stop
    return pieces


def changed_spans(old: Picture, new: Picture) -> list[Span]:
    """The cells to send again. Pictures of different sizes differ everywhere.

    Near changes in a row become one span.
    """
    if old.width != new.width or len(old.rows) != len(new.rows):
        return [Span(0, y, new.width) for y in range(len(new.rows))]
    spans: list[Span] = []
    for y, (before, after) in enumerate(zip(old.rows, new.rows, strict=True)):
        if before != after:
            spans.extend(_row_spans(before, after, y))
    return spans


def _row_spans(before: Row, after: Row, y: int) -> list[Span]:
    """Spans of one row; a row with wide characters is taken whole, lest one is cut in half."""
    if PLACEHOLDER in before.text or PLACEHOLDER in after.text:
        return [Span(0, y, len(after.text))]
    spans: list[Span] = []
    start = last = -1
    pairs = zip(before.text, after.text, before.styles, after.styles, strict=True)
    for x, (old, new, old_style, new_style) in enumerate(pairs):
        if old == new and old_style == new_style:
            continue
        if start >= 0 and x - last > _MERGE_GAP_CELLS:
            spans.append(Span(start, y, last - start + 1))
            start = x
        elif start < 0:
            start = x
        last = x
    spans.append(Span(start, y, last - start + 1))
    return spans
