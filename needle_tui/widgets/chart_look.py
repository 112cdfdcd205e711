"""How the series of a chart are told apart: by line, by marker, and by colour last."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SERIES = 8

TITLE, LABEL, AXIS, MARK, BAD, CURSOR, RAW, EMPTY = "t", "l", "x", "m", "b", "c", "r", "e"
"""One-letter styles of a chart's picture; the series are `1` to `8`."""


@dataclass(frozen=True)
class SeriesLook:
    """A colour (`style`, a digit), a dash of `on` columns drawn and `off` left out, and a marker.

    `marker` is a character, `point` for the glyph set's dot, or empty. Where points are dense a marker stands
    every `every` cells, `phase` cells from the left, so that those of several series do not collide.
    """

    style: str = "1"
    on: int = 1
    off: int = 0
    marker: str = ""
    every: int = 16
    phase: int = 0


def plain_look(index: int) -> SeriesLook:
    """The look of the series at a place: a line, then a dotted one with points, then numbered ones."""
    if index == 0:
        return SeriesLook()
    if index == 1:
        return SeriesLook("2", on=1, off=2, marker="point", every=12, phase=6)
    return tagged_look(index)


def tagged_look(index: int) -> SeriesLook:
    """The look of a series among equals: a line that carries the number of its place."""
    place = index % MAX_SERIES
    dash = ((1, 0), (4, 2), (1, 2), (6, 2), (2, 2), (8, 3), (3, 3), (1, 3))[place]
    return SeriesLook(str(place + 1), dash[0], dash[1], str(place + 1), every=24, phase=3 * place)
