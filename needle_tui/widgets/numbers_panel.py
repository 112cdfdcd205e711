"""The run's numbers now: losses with their best, step time with its parts, and throughput."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from needle.units import number_text
from needle_tui.widgets.moment_lines import MomentLines

if TYPE_CHECKING:
    from needle_tui.moment import Extreme

_NAME = 7
_VALUE = 8
_PART_ROLES = {"data": "$warning", "transfer": "$secondary", "compute": "$accent"}
_PART_FILL = {"data": "▒", "transfer": "░", "compute": "█"}


class NumbersPanel(MomentLines):
    """Right-aligned numbers with their units, in columns that never move."""

    def __init__(self) -> None:
        super().__init__(id="numbers", title="Now", classes="panel")

    def lines(self, width: int) -> list[Content]:
        """Losses, step time, its split, tokens."""
        moment = self.moment
        if moment is None:
            return []
        steps = moment.steps
        found = [_extreme_line("loss", moment.loss, width), _extreme_line("val", moment.val_loss, width)]
        p95 = (f"p95 {_number(steps.p95_ms)}",) if steps.p95_ms is not None else ()
        found.append(_line("step", _number(steps.median_ms), "ms", p95, width))
        rate = f"{moment.tokens_per_s:,.0f}" if moment.tokens_per_s is not None else "-"
        found.append(_line("tokens", rate, "/s", (), width))
        found.extend(split_lines(steps.parts_ms, width))
        return found


def split_lines(parts: tuple[tuple[str, float], ...], width: int) -> list[Content]:
    """What a step's time went to: one bar of its parts, and the parts in words."""
    total = sum(value for _, value in parts)
    if not parts or total <= 0:
        return []
    inner = width - 2
    bar: list[Content] = []
    used = 0
    for at, (name, value) in enumerate(parts):
        cells = inner - used if at == len(parts) - 1 else min(inner - used, round(value / total * inner))
        bar.append(Content.assemble((_PART_FILL.get(name, "█") * cells, _PART_ROLES.get(name, "$accent"))))
        used += cells
    words = [f"{name} {value / total:.0%}" for name, value in parts]
    # What does not fit is the last part, and that is what the others leave.
    while len("  ".join(words)) > inner and len(words) > 1:
        words.pop()
    return [Content.assemble("  ", *bar), Content.assemble(("  " + "  ".join(words), "$muted"))]


def _extreme_line(name: str, extreme: Extreme, width: int) -> Content:
    last = number_text(extreme.last) if extreme.last is not None else "-"
    if extreme.best is None:
        return _line(name, last, "", (), width)
    best = f"best {number_text(extreme.best)}"
    return _line(name, last, "", (f"{best} @{extreme.best_step:,}", best), width)


def _line(name: str, value: str, unit: str, asides: tuple[str, ...], width: int) -> Content:
    """Name, value, unit, and the first aside that fits whole; an empty unit yields its place to it."""
    head = Content.assemble("  ", (name.ljust(_NAME), "$muted"), (value.rjust(_VALUE), "bold"))
    places = (f" {unit:<2}", "") if not unit else (f" {unit:<2}",)
    for aside in asides:
        for place in places:
            line = Content.assemble(head, (f"{place} {aside}", "$muted"))
            if line.cell_length <= width:
                return line
    return Content.assemble(head, (f" {unit}", "$muted"))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value < 10_000 else f"{value:,.0f}"
