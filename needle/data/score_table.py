"""Scores of several forms of a model side by side, for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from needle.data.calls import Scores


class Measure(NamedTuple):
    """One line of the table: (count, of how many) of a form's scores."""

    name: str
    of: Callable[[Scores], tuple[int, int]]


MEASURES = (
    Measure("exact calls", lambda scores: (scores.exact, scores.examples)),
    Measure("right tools", lambda scores: (scores.right_tools, scores.examples)),
    Measure("right arguments", lambda scores: (scores.right_arguments, scores.arguments)),
    Measure("false calls", lambda scores: (scores.false_calls, scores.off_topic)),
    Measure("missed calls", lambda scores: (scores.missed_calls, scores.on_topic)),
    Measure("unreadable", lambda scores: (scores.unreadable, scores.examples)),
)
_NAME_WIDTH = max(len(measure.name) for measure in MEASURES)
_LEAST_WIDTH = 20


def score_lines(columns: Sequence[tuple[str, Scores]]) -> list[str]:
    """A heading and one line for each measure; each cell says the share and what it is a share of."""
    cells = [[name, *(_cell(*measure.of(scores)) for measure in MEASURES)] for name, scores in columns]
    widths = [max(_LEAST_WIDTH, *map(len, column)) for column in cells]
    names = ["", *(measure.name for measure in MEASURES)]
    return [
        "  ".join(
            [name.ljust(_NAME_WIDTH), *(cell.rjust(width) for cell, width in zip(row, widths, strict=True))]
        )
        for name, row in zip(names, zip(*cells, strict=True), strict=True)
    ]


def share_text(count: int, of: int) -> str:
    """A share in per cent; nothing was counted where there is none."""
    return f"{100 * count / of:.1f} %" if of else "—"


def _cell(count: int, of: int) -> str:
    return f"{count}/{of}  {share_text(count, of):>7}" if of else share_text(count, of)
