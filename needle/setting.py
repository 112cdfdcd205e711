"""What a setting is, and how its values are read and written as text."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass
from typing import Literal

Value = str | int | float | bool
FieldKind = Literal["text", "path", "integer", "number", "choice", "switch"]


@dataclass(frozen=True)
class Setting:
    """What a person needs to know of one setting.

    `least`/`most` are inclusive limits, `above`/`below` exclusive ones. `members` are the names of which a
    text holds one or more, with commas. `group` names the form's section.
    """

    help: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    positional: bool = False
    path: bool = False
    members: tuple[str, ...] = ()
    advanced: bool = False
    group: str = "Training"


@dataclass(frozen=True)
class Field:
    """One setting as the command line and the form see it."""

    name: str
    kind: FieldKind
    default: Value
    setting: Setting
    choices: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The command-line spelling, `--batch-size`; a positional has none."""
        return "" if self.setting.positional else "--" + self.name.replace("_", "-")

    @property
    def negative_flag(self) -> str:
        """The spelling that turns a switch off, `--no-eval`."""
        return f"--no-{self.flag.removeprefix('--')}"

    @property
    def label(self) -> str:
        """The spelling for people, `Batch size`."""
        return "LR" if self.name == "lr" else self.name.replace("_", " ").capitalize()


def parse_value(field: Field, value: object) -> Value:
    """A value of the field's kind within its limits. Raises ValueError with words for a person."""
    parsed = _converted(field, value)
    setting = field.setting
    if field.kind in ("integer", "number"):
        number = float(typing.cast(float, parsed))
        if not math.isfinite(number):
            raise ValueError(f"must be a finite number, not {value}")
        _within(number, setting)
    if field.choices and parsed not in field.choices:
        raise ValueError(f"must be one of {', '.join(field.choices)}, not {value!r}")
    return _chosen(str(parsed), setting.members) if setting.members else parsed


def value_text(value: Value) -> str:
    """A value as a person would type it: `1e-4`, `0.1`, `16`; reading it back gives the same value."""
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    if 0.01 <= abs(value) < 1e6:
        return repr(value)
    spellings = (f"{value:.{digits}e}" for digits in range(18))
    mantissa, _, exponent = next(text for text in spellings if float(text) == value).partition("e")
    return f"{mantissa}e{int(exponent)}"


def _converted(field: Field, value: object) -> Value:
    if field.kind == "switch":
        return _switch(value)
    if field.kind == "integer":
        return _integer(value)
    if field.kind == "number":
        return _number(value)
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {value!r}")
    return value.strip()


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {
        "yes": True,
        "true": True,
        "on": True,
        "1": True,
        "no": False,
        "false": False,
        "off": False,
        "0": False,
    }
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError(f"must be yes or no, not {value!r}")


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    text = str(value).strip().replace("_", "").replace(",", "")
    if not text:
        raise ValueError("needs a whole number")
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"must be a whole number, not {value!r}") from None


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip().replace("_", "")
    if not text:
        raise ValueError("needs a number")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"must be a number, not {value!r}") from None


def _chosen(text: str, members: tuple[str, ...]) -> str:
    """The members named in a text, each once and in their own order."""
    named = {name.strip() for name in text.split(",") if name.strip()}
    unknown = sorted(named - set(members))
    if unknown or not named:
        found = f", not {unknown[0]!r}" if unknown else ""
        raise ValueError(f"must name some of {','.join(members)}{found}")
    return ",".join(name for name in members if name in named)


def _within(number: float, setting: Setting) -> None:
    if setting.least is not None and number < setting.least:
        raise ValueError(f"must be at least {setting.least:g}, not {number:g}")
    if setting.most is not None and number > setting.most:
        raise ValueError(f"must be at most {setting.most:g}, not {number:g}")
    if setting.above is not None and number <= setting.above:
        raise ValueError(f"must be above {setting.above:g}, not {number:g}")
    if setting.below is not None and number >= setting.below:
        raise ValueError(f"must be below {setting.below:g}, not {number:g}")
