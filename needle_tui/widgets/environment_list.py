"""The command line and the environment of the run to be started."""

from __future__ import annotations

import shlex

from rich.cells import cell_len
from textual.content import Content

from needle.runs.record import Variable
from needle_tui.text import fit, indented, inert, wrapped
from needle_tui.widgets.lines import Lines


class CommandLine(Lines):
    """The command a person types for the same run."""

    def __init__(self) -> None:
        super().__init__(id="command", classes="panel")
        self.border_title = "Command"
        self._command: tuple[str, ...] = ()

    def show(self, command: tuple[str, ...]) -> None:
        """What the plan says; nothing while there is no plan."""
        self._command = command
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """As many lines as it takes: it is there to be read and copied."""
        if not self._command:
            return [Content.assemble(("  none yet", "$muted"))]
        words = wrapped(inert(shlex.join(self._command)), max(8, width - 4))
        return [Content.assemble(("  $ ", "$muted"), (words[0], "bold")), *indented(words[1:], 4, "bold")]


class EnvironmentList(Lines):
    """Each variable that the run's process is given, with its value and reason."""

    def __init__(self) -> None:
        super().__init__(id="environment", classes="panel")
        self.border_title = "Environment"
        self._variables: tuple[Variable, ...] = ()
        self._dense = False

    def show(self, variables: tuple[Variable, ...], *, dense: bool) -> None:
        """What the plan says; `dense` gives each variable one line."""
        self._variables, self._dense = variables, dense
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """In the plan's order, which puts first what matters most."""
        if not self._variables:
            return [Content.assemble(("  none yet", "$muted"))]
        return [line for one in self._variables for line in _variable_lines(one, width, dense=self._dense)]


def _variable_lines(variable: Variable, width: int, *, dense: bool) -> list[Content]:
    """`NAME=value  reason`, the reason below where it does not fit; the person's own are marked."""
    name = inert(variable.name)
    value = f"{name}={inert(variable.value)}" if variable.value is not None else f"unset {name}"
    role = "$accent" if variable.kept else ""
    words = inert(variable.reason)
    room = width - 2 - cell_len(value) - 2
    if dense or len(words) <= room:
        head = Content.assemble("  ", (fit(value, width - 2), role))
        return [Content.assemble(head, "  ", (fit(words, width - head.cell_length - 2), "$muted"))]
    below = indented(wrapped(words, max(8, width - 4)), 4, "$muted")
    return [*indented(wrapped(value, max(8, width - 2)), 2, role), *below]
