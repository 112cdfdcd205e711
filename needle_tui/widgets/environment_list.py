"""The environment and the command line of the run to be started."""

from __future__ import annotations

import shlex

from textual.content import Content

from needle.runs.record import Variable
from needle_tui.text import fit, indented, inert, wrapped
from needle_tui.widgets.lines import Lines


class EnvironmentList(Lines):
    """Each variable with its value and reason, then the command a person types for the same run."""

    def __init__(self) -> None:
        super().__init__(id="environment", classes="panel")
        self.border_title = "Will run"
        self._variables: tuple[Variable, ...] = ()
        self._command: tuple[str, ...] = ()
        self._dense = False

    def show(self, variables: tuple[Variable, ...], command: tuple[str, ...], *, dense: bool) -> None:
        """What the plan says; nothing while there is no plan."""
        self._variables, self._command, self._dense = variables, command, dense
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """The command first: it is what most people look for."""
        if not self._command:
            return [Content.assemble(("  nothing yet", "$muted"))]
        command = wrapped(inert(shlex.join(self._command)), max(8, width - 4))
        found = [Content.assemble(("  $ ", "$muted"), (command[0], "bold"))]
        found.extend(indented(command[1:], 4, "bold"))
        for variable in self._variables:
            found.extend(_variable_lines(variable, width, dense=self._dense))
        return found


def _variable_lines(variable: Variable, width: int, *, dense: bool) -> list[Content]:
    """`NAME=value  reason`; a variable the person set says so, one taken away is struck from the list."""
    name, reason = inert(variable.name), inert(variable.reason)
    value = f"{name}={inert(variable.value)}" if variable.value is not None else f"unset {name}"
    kept = "yours: " if variable.kept else ""
    head = Content.assemble("  ", (fit(value, width - 2), "$accent" if variable.kept else ""))
    room = width - head.cell_length - 2
    words = kept + reason
    if dense or len(words) <= room:
        return [Content.assemble(head, "  ", (fit(words, room), "$muted"))]
    return [head, *indented(wrapped(words, max(8, width - 4)), 4, "$muted")]
