"""Reasons: a plan in full, where the screen behind has room for the beginnings only."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from needle.runs.record import Decision, Plan
from needle_tui.text import indented, inert, wrapped
from needle_tui.theme import style_sheet
from needle_tui.widgets.decision_list import DecisionList
from needle_tui.widgets.environment_list import CommandLine, EnvironmentList
from needle_tui.widgets.lines import Lines
from needle_tui.widgets.memory_bill import MemoryPanel

Named = tuple[tuple[str, Decision], ...]


class RejectedList(Lines):
    """What else could have been chosen, and why it was not."""

    def __init__(self, decisions: Named) -> None:
        super().__init__(classes="panel")
        self.border_title = "Not chosen"
        self._decisions = decisions

    def lines(self, width: int) -> list[Content]:
        """One paragraph for each option."""
        found: list[Content] = []
        for name, decision in self._decisions:
            for option, reason in decision.rejected.items():
                found.append(Content.assemble("  ", (f"{name}: ", "$muted"), (inert(option), "bold")))
                found.extend(indented(wrapped(inert(reason), max(8, width - 4)), 4, "$muted"))
        return found or [Content.assemble(("  nothing else was possible", "$muted"))]


class ReasonsScreen(ModalScreen[None]):
    """Every decision, what was rejected, every variable, the memory bill and the command."""

    CSS_PATH = style_sheet("dialog")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f3,enter", "dismiss", "Close")]

    def __init__(self, decisions: Named, plan: Plan) -> None:
        super().__init__()
        self._decisions = decisions
        self._plan = plan

    def compose(self) -> ComposeResult:
        """One scrolling sheet."""
        with VerticalScroll(classes="dialog wide") as dialog:
            dialog.border_title = "Reasons"
            dialog.border_subtitle = "Esc closes, ↑↓ scrolls"
            yield DecisionList("Chosen", id="chosen")
            yield RejectedList(self._decisions)
            yield EnvironmentList()
            yield MemoryPanel()
            yield CommandLine()

    def on_mount(self) -> None:
        """Show the plan."""
        self.query_one("#chosen", DecisionList).show(self._decisions, dense=False)
        self.query_one(EnvironmentList).show(self._plan.environment, dense=False)
        self.query_one(MemoryPanel).show(self._plan.memory)
        self.query_one(CommandLine).show(self._plan.command_line)
