"""What was decided for the person, each with its reason."""

from __future__ import annotations

from textual.content import Content

from needle.runs.record import Decision
from needle_tui.text import column, fit, indented, inert, wrapped
from needle_tui.widgets.lines import Lines

_NAME_WIDTH = 11


class DecisionList(Lines):
    """A line for each decision; its reason below it where there is room, else after it."""

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(id=id, classes="panel")
        self.border_title = title
        self._decisions: tuple[tuple[str, Decision], ...] = ()
        self._message = ""
        self._dense = False

    def show(self, decisions: tuple[tuple[str, Decision], ...], *, message: str = "", dense: bool) -> None:
        """Named decisions; `message` stands in for them while there are none. `dense`: one line each."""
        self._decisions, self._message, self._dense = decisions, message, dense
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """Name, choice and reason of each."""
        if not self._decisions:
            return indented(wrapped(inert(self._message), max(8, width - 2)), 2, "$muted")
        found: list[Content] = []
        for name, decision in self._decisions:
            found.extend(self._decision_lines(name, decision, width))
        return found

    def _decision_lines(self, name: str, decision: Decision, width: int) -> list[Content]:
        choice, reason = inert(decision.choice), inert(decision.reason)
        room = width - 2 - _NAME_WIDTH
        head = Content.assemble("  ", (column(name, _NAME_WIDTH), "$muted"), (fit(choice, room), "bold"))
        left = width - head.cell_length - 2
        if not reason:
            return [head]
        if self._dense or len(reason) <= left:
            return [Content.assemble(head, "  ", (fit(reason, left), "$muted"))]
        return [head, *indented(wrapped(reason, max(8, room)), 2 + _NAME_WIDTH, "$muted")]
