"""The form of a task's settings, generated from their one definition."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical

from needle.config import Field, RunSettings, Value
from needle_tui.form_layout import as_text, choices_of, grouped_lines, is_advanced
from needle_tui.widgets.form_field import ChoiceField, FormField, TextField


class FieldRow(Horizontal):
    """Two short settings side by side."""

    DEFAULT_CSS = """
    FieldRow { height: auto; }
    FieldRow > FormField { width: 1fr; }
    """


class FieldGroup(Vertical):
    """Settings that belong together."""

    DEFAULT_CSS = """
    FieldGroup { height: auto; }
    """


class SettingsForm(Container):
    """Every setting of a task as a field; the advanced ones only when asked for."""

    DEFAULT_CSS = """
    SettingsForm { height: auto; layout: vertical; }
    SettingsForm .-advanced { display: none; }
    SettingsForm.-all .-advanced { display: block; }
    """

    def __init__(self, task: type[RunSettings], values: Mapping[str, Value]) -> None:
        super().__init__()
        self._settings_task = task
        self._start_values = values

    def compose(self) -> ComposeResult:
        """The groups in their order, each with its lines."""
        for lines in grouped_lines(self._settings_task):
            with FieldGroup() as group:
                group.set_class(all(map(is_advanced, lines)), "-advanced")
                for fields in lines:
                    if len(fields) == 1:
                        yield self._made(fields[0])
                    else:
                        with FieldRow():
                            yield from map(self._made, fields)

    def _made(self, field: Field) -> FormField:
        value = as_text(self._start_values.get(field.name, field.default))
        choices = choices_of(field)
        widget = ChoiceField(field, value, choices) if choices else TextField(field, value)
        widget.set_class(field.setting.advanced, "-advanced")
        return widget

    @property
    def values(self) -> dict[str, str]:
        """Every value as typed, by setting."""
        return {widget.field.name: widget.value for widget in self.query(FormField)}

    def field_widget(self, name: str) -> FormField:
        """The field of one setting."""
        return self.query_one(f"#field-{name}", FormField)

    def offer(self, name: str, choices: tuple[str, ...]) -> None:
        """Offer these values for a setting that is chosen among few."""
        self.query_one(f"#field-{name}", ChoiceField).offer(choices)

    def load(self, values: Mapping[str, Value]) -> None:
        """Put other values into every field; a setting that is not given goes back to its default."""
        for widget in self.query(FormField):
            widget.set_value(as_text(values.get(widget.field.name, widget.field.default)))

    def show_problems(self, problems: Mapping[str, str], remarks: Mapping[str, str]) -> None:
        """Mark each field with its problem, or its remark; a hidden field with a problem comes out."""
        for widget in self.query(FormField):
            name = widget.field.name
            widget.show(problem=problems.get(name, ""), remark=remarks.get(name, ""))
        if any(self.field_widget(name).field.setting.advanced for name in problems):
            self.show_advanced(True)

    def show_advanced(self, shown: bool) -> None:
        """Show or hide the settings that most runs leave alone."""
        self.set_class(shown, "-all")
