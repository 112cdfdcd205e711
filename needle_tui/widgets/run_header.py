"""The top of Monitor: state, progress, time, and the reason when there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from needle.units import duration_text
from needle_tui.marks import marks
from needle_tui.phases import look_of, phase_text
from needle_tui.text import fit, indented, inert, wrapped
from needle_tui.widgets.moment_lines import MomentLines

if TYPE_CHECKING:
    from needle_tui.moment import Moment

_REASON_LINES = 2


class RunHeader(MomentLines):
    """Where the eye lands first."""

    def __init__(self) -> None:
        super().__init__(id="run-header")

    def lines(self, width: int) -> list[Content]:
        """State and numbers, the bar, and the reason."""
        moment = self.moment
        if moment is None:
            return []
        return [
            *_state_lines(moment, width),
            progress_bar(moment.share, width),
            *_reason_lines(moment, width),
        ]


def progress_bar(share: float, width: int) -> Content:
    """A thin line: done in the accent, the rest muted."""
    done = round(share * width) if share < 1 else width
    return Content.assemble((marks().done * done, "$accent"), (marks().rest * (width - done), "$rule"))


def _state_lines(moment: Moment, width: int) -> list[Content]:
    """One line where everything fits, else the name on the first and the numbers on the second."""
    state = phase_text(look_of(moment.status.phase, stalled=moment.status.stalled))
    numbers = _numbers(moment)
    name_room = width - state.cell_length - numbers.cell_length - 4
    name = inert(moment.request.name or moment.request.id)
    if name_room >= min(12, len(name)):
        head = Content.assemble(state, "  ", (fit(name, name_room), "bold"))
        return [Content.assemble(head, " " * (width - head.cell_length - numbers.cell_length), numbers)]
    head = Content.assemble(state, "  ", (fit(name, width - state.cell_length - 2), "bold"))
    return [head, numbers.truncate(width, ellipsis=True)]


def _numbers(moment: Moment) -> Content:
    """`step 128 of 240  53 %   1m 12s   left 1m 03s   attempt 2`; widths hold still while numbers grow."""
    total = f"{moment.total:,}" if moment.total else "?"
    step = f"{moment.step:,}".rjust(len(total))
    parts = [Content.assemble(("step ", "$muted"), (step, "bold"), (f" of {total}", "$muted"))]
    if moment.total:
        parts.append(Content.assemble((f"{moment.share:4.0%}", "bold")))
    if moment.elapsed_s is not None:
        parts.append(Content.assemble(("elapsed ", "$muted"), duration_text(moment.elapsed_s).rjust(7)))
    if moment.is_live:
        parts.append(Content.assemble(("left ", "$muted"), duration_text(moment.left_s).rjust(7)))
    if moment.attempt > 1:
        parts.append(Content.assemble(("attempt ", "$muted"), str(moment.attempt)))
    return Content("  ").join(parts)


def _reason_lines(moment: Moment, width: int) -> list[Content]:
    reason = inert(moment.status.reason)
    if not reason:
        return []
    look = look_of(moment.status.phase, stalled=moment.status.stalled)
    role = f"${look.role}" if look.role in ("error", "warning") else "$foreground"
    lines = wrapped(reason, width)
    if len(lines) > _REASON_LINES:
        lines = [*lines[: _REASON_LINES - 1], fit(" ".join(lines[_REASON_LINES - 1 :]), width)]
    return indented(lines, 0, role)
