"""The form of a task's settings, generated from their one definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical

from needle.config import Field, RunSettings, Value, fields_of, value_text
from needle_tui.widgets.form_field import ChoiceField, FormField, TextField

GROUPS = ("Data", "Training", "Compute", "Run")
OFFERED = {"backend": ("auto", "cpu")}
"""Settings typed as text whose useful values are few: they are offered as choices."""


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
    FieldGroup .-advanced { display: none; }
    SettingsForm.-all .-advanced { display: block; }
    FieldGroup.-advanced { display: none; }
    """


class SettingsForm(Container):
    """Every setting of a task as a field; the advanced ones only when asked for."""

    DEFAULT_CSS = """
    SettingsForm { height: auto; layout: vertical; }
    """

    def __init__(self, task: type[RunSettings], values: Mapping[str, Value]) -> None:
        super().__init__()
        self._fields = fields_of(task)
        self._start_values = values

    def compose(self) -> ComposeResult:
        """The groups in their order, each with its fields; short ones share a line with their like."""
        for group in GROUPS:
            fields = [field for field in self._fields if field.setting.group == group]
            with FieldGroup() as container:
                container.set_class(all(field.setting.advanced for field in fields), "-advanced")
                for pair in _paired(fields):
                    with FieldRow() as row:
                        row.set_class(all(field.setting.advanced for field in pair), "-advanced")
                        yield from map(self._made, pair)

    def _made(self, field: Field) -> FormField:
        value = as_text(self._start_values.get(field.name, field.default))
        offered = OFFERED.get(field.name, ())
        is_choice = offered or field.kind in ("choice", "switch")
        widget = ChoiceField(field, value, offered) if is_choice else TextField(field, value)
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


def _paired(fields: Sequence[Field]) -> Iterator[tuple[Field, ...]]:
    """Lines of the form: two short settings that follow one another share one."""
    waiting: Field | None = None
    for field in fields:
        if field.kind not in ("integer", "number") or field.setting.advanced:
            yield from ([(waiting,)] if waiting else [])
            yield (field,)
            waiting = None
        elif waiting is None:
            waiting = field
        else:
            yield (waiting, field)
            waiting = None
    yield from ([(waiting,)] if waiting else [])


def as_text(value: Value) -> str:
    """A value as the form shows it; a switch is yes or no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value_text(value)
