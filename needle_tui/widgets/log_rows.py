"""A log as rows of a pane: where it is scrolled to, how long lines are cut or wrapped, what a search finds.

Only the lines that are seen are ever looked at, except by a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from needle_tui.text import inert
from needle_tui.widgets.chart_picture import PLACEHOLDER, Row, cells, row

TEXT, CUT, MATCH, CURRENT, STATUS = "t", "x", "m", "c", "s"
"""One-letter styles of a log pane's picture."""


class Place(NamedTuple):
    """A row of the log: a line, and which of the pieces it is wrapped into."""

    line: int
    piece: int = 0


@dataclass(frozen=True)
class Frame:
    """The pane's room for lines, and how they are fitted into it."""

    width: int
    height: int
    wrap: bool = False
    cut_mark: str = "…"


@dataclass(frozen=True)
class Found:
    """A search: what for, the lines that have it, and which of those is the current one."""

    text: str = ""
    lines: tuple[int, ...] = ()
    current: int = 0

    @property
    def line(self) -> int | None:
        """The current line, None when there is none."""
        return self.lines[self.current] if self.lines else None

    def moved(self, by: int) -> Found:
        """The next or previous one, round the ends."""
        return Found(self.text, self.lines, (self.current + by) % len(self.lines)) if self.lines else self


NOTHING_FOUND = Found()


def find(lines: Sequence[str], text: str, near: int) -> Found:
    """The lines that contain `text`, whatever its case; the current one is the last up to line `near`."""
    wanted = text.casefold()
    if not wanted:
        return NOTHING_FOUND
    hits = tuple(index for index, line in enumerate(lines) if wanted in line.casefold())
    before = sum(1 for index in hits if index <= near)
    return Found(text, hits, max(0, before - 1))


def rows_from(lines: Sequence[str], top: Place, frame: Frame, found: Found) -> list[Row]:
    """`frame.height` rows from `top` on, the last ones blank where the log ends."""
    rows: list[Row] = []
    line, skipped = top.line, top.piece
    while len(rows) < frame.height and line < len(lines):
        pieces = _pieces(lines[line], frame)[skipped:]
        style = CURRENT if line == found.line else MATCH
        rows.extend(_marked(piece, found.text, style, frame) for piece in pieces)
        line, skipped = line + 1, 0
    blank = row("", TEXT, frame.width)
    return (rows + [blank] * frame.height)[: frame.height]


def last_page(lines: Sequence[str], frame: Frame) -> Place:
    """The top of the page that ends with the log's last row."""
    return moved(lines, Place(len(lines)), -frame.height, frame)


def moved(lines: Sequence[str], place: Place, by: int, frame: Frame) -> Place:
    """The place `by` rows further down, or up when negative, within the log."""
    line, piece = min(place.line, len(lines)), place.piece
    while by < 0:
        if piece >= -by:
            return Place(line, piece + by)
        if line == 0:
            return Place(0)
        by += piece
        line -= 1
        piece = _piece_count(lines[line], frame)
    while by > 0 and line < len(lines):
        left = _piece_count(lines[line], frame) - piece
        if by < left:
            return Place(line, piece + by)
        by, line, piece = by - left, line + 1, 0
    return Place(line, piece)


def _piece_count(line: str, frame: Frame) -> int:
    return len(_pieces(line, frame)) if frame.wrap else 1


def _pieces(line: str, frame: Frame) -> list[str]:
    """A line, one character a cell, as the rows it takes: one that is cut, or as many as it needs."""
    width = max(1, frame.width)
    if not frame.wrap:
        shown = cells(inert(line[: 4 * width]))
        return [shown if len(shown) <= width else shown[: width - 1] + frame.cut_mark]
    shown = cells(inert(line))
    pieces = []
    while len(shown) > width:
        # A character two cells wide goes to the next row whole.
        at = width - 1 if shown[width] == PLACEHOLDER and width > 1 else width
        pieces.append(shown[:at])
        shown = shown[at:]
    return [*pieces, shown]


def _marked(piece: str, text: str, style: str, frame: Frame) -> Row:
    """A piece as a row, with what was searched for and the cut mark in styles of their own."""
    made = row(piece, TEXT, frame.width)
    styles = made.styles
    wanted, within = cells(inert(text)).casefold(), made.text.casefold()
    # Where folding changes the length, places in the one are not places in the other.
    at = within.find(wanted) if wanted and len(within) == len(made.text) else -1
    while at >= 0:
        styles = styles[:at] + style * len(wanted) + styles[at + len(wanted) :]
        at = within.find(wanted, at + len(wanted))
    if not frame.wrap and len(piece) == frame.width and piece.endswith(frame.cut_mark):
        styles = styles[:-1] + CUT
    return Row(made.text, styles[: frame.width])
