"""A picture of the settings form: painted at once, while the fields that can be typed into are being made."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from textual.content import Content

from needle.config import Field, RunSettings, Value
from needle_tui.form_layout import LABEL_WIDTH, as_text, choices_of, grouped_lines, is_advanced
from needle_tui.marks import marks
from needle_tui.text import column, fit, inert
from needle_tui.widgets.lines import Lines


class FormPicture(Lines):
    """The form's lines with the values it starts with."""

    def __init__(self, task: type[RunSettings], values: Mapping[str, Value]) -> None:
        super().__init__(id="form-picture")
        self._groups = grouped_lines(task)
        self._values = values

    def lines(self, width: int) -> list[Content]:
        """Each line of the form where the form will have it."""
        found: list[Content] = []
        for group in self._groups:
            shown = [fields for fields in group if not is_advanced(fields)]
            cells = [self._line(fields, width) for fields in shown]
            found += [*cells, Content()] if cells and not self.screen.has_class("-short") else cells
        return found

    def _line(self, fields: tuple[Field, ...], width: int) -> Content:
        half = width // len(fields)
        return Content("").join(self._cell(field, half) for field in fields)

    def _cell(self, field: Field, width: int) -> Content:
        label = Content.assemble((column(f"  {fit(field.label, LABEL_WIDTH - 3)}", LABEL_WIDTH), "$muted"))
        value = inert(as_text(self._values.get(field.name, field.default)))
        choices = choices_of(field)
        if not choices:
            room = max(0, width - LABEL_WIDTH - 1)
            return Content.assemble(label, (column(value, room), "$foreground on $surface"), " ")
        return Content.assemble(label, choice_text(value, choices, width - LABEL_WIDTH))


def choice_text(value: str, choices: tuple[str, ...], width: int) -> Content:
    """All choices with the chosen one marked; only the chosen one, between arrows, where not all fit."""
    if sum(cell_len(choice) + 4 for choice in choices) - 2 <= width:
        return Content("  ").join(_option(choice, choice == value) for choice in choices)
    arrows = marks().before, marks().after
    return Content.assemble(
        (f"{arrows[0]} ", "$muted"), (fit(value, width - 4), "$accent"), (f" {arrows[1]}", "$muted")
    )


def _option(choice: str, chosen: bool) -> Content:
    mark = marks().chosen if chosen else marks().unchosen
    return Content.assemble((f"{mark} {choice}", "$accent" if chosen else "$muted"))
