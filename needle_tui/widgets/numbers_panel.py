"""The run's numbers now: losses with their best, step time with its parts, and throughput."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from needle.units import number_text
from needle_tui.text import fit
from needle_tui.widgets.lines import Lines

if TYPE_CHECKING:
    from needle_tui.moment import Extreme, Moment

_NAME = 9
_VALUE = 8
_PART_ROLES = {"data": "$warning", "transfer": "$secondary", "compute": "$accent"}
_PART_FILL = {"data": "▒", "transfer": "░", "compute": "█"}


class NumbersPanel(Lines):
    """Right-aligned numbers with their units, in columns that never move."""

    def __init__(self) -> None:
        super().__init__(id="numbers", classes="panel")
        self.border_title = "Now"
        self._moment: Moment | None = None

    def show(self, moment: Moment | None) -> None:
        """A newer moment."""
        self._moment = moment
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """Losses, step time, its split, tokens."""
        moment = self._moment
        if moment is None:
            return []
        steps = moment.steps
        found = [_extreme_line("loss", moment.loss, width), _extreme_line("val loss", moment.val_loss, width)]
        p95 = f"p95 {_number(steps.p95_ms)}" if steps.p95_ms is not None else ""
        found.append(_line("step", _number(steps.median_ms), "ms", p95, width))
        rate = f"{moment.tokens_per_s:,.0f}" if moment.tokens_per_s is not None else "-"
        found.append(_line("tokens", rate, "/s", "", width))
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
    words = "  ".join(f"{name} {value / total:.0%}" for name, value in parts)
    return [Content.assemble("  ", *bar), Content.assemble(("  " + fit(words, inner), "$muted"))]


def _extreme_line(name: str, extreme: Extreme, width: int) -> Content:
    best = f"best {number_text(extreme.best)} @{extreme.best_step:,}" if extreme.best is not None else ""
    return _line(name, number_text(extreme.last) if extreme.last is not None else "-", "", best, width)


def _line(name: str, value: str, unit: str, aside: str, width: int) -> Content:
    head = Content.assemble(
        "  ", (name.ljust(_NAME), "$muted"), (value.rjust(_VALUE), "bold"), (f" {unit:<2}", "$muted")
    )
    return Content.assemble(head, (" " + fit(aside, width - head.cell_length - 1), "$muted"))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value < 10_000 else f"{value:,.0f}"
