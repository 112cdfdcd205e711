"""How the settings form is laid out, for the form itself and for the picture of it that is painted first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from needle.config import Field, RunSettings, Value, fields_of, value_text

LABEL_WIDTH = 14
GROUPS = ("Data", "Training", "Compute", "Run")
OFFERED = {"backend": ("auto", "cpu")}
"""Settings typed as text whose useful values are few: they are offered as choices."""


def grouped_lines(task: type[RunSettings]) -> tuple[tuple[tuple[Field, ...], ...], ...]:
    """For each group of settings its lines, each of one field or of two short ones."""
    fields = fields_of(task)
    groups = ([field for field in fields if field.setting.group == group] for group in GROUPS)
    return tuple(tuple(_paired(group)) for group in groups)


def choices_of(field: Field) -> tuple[str, ...]:
    """The values that are offered; none for a setting that is typed."""
    if field.kind == "switch":
        return ("no", "yes")
    return field.choices or OFFERED.get(field.name, ())


def as_text(value: Value) -> str:
    """A value as the form shows it; a switch is yes or no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value_text(value)


def is_advanced(fields: Sequence[Field]) -> bool:
    """Whether most runs leave all of these alone."""
    return all(field.setting.advanced for field in fields)


def _paired(fields: Sequence[Field]) -> Iterator[tuple[Field, ...]]:
    """Two short settings that follow one another share a line."""
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
