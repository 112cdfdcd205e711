"""The filter of the runs table: words, and `field=value`, `field>number`, `field<number`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from needle_tui.fleet import RunRow

Test = Callable[[RunRow], bool]

_COMPARISON = re.compile(r"^(?P<field>[a-z_]+)(?P<sign>=|>|<)(?P<value>.+)$")
_TEXTS: dict[str, Callable[[RunRow], str]] = {
    "state": lambda row: "stalled" if row.stalled else row.phase,
    "name": lambda row: row.name,
    "task": lambda row: row.task,
    "device": lambda row: row.device,
    "id": lambda row: row.directory.name,
}
_NUMBERS: dict[str, Callable[[RunRow], float | None]] = {
    "loss": lambda row: row.loss,
    "best": lambda row: row.best,
    "step": lambda row: row.step,
    "total": lambda row: row.total,
}


def filtered(rows: Sequence[RunRow], text: str) -> tuple[RunRow, ...]:
    """The rows for which every word of the filter holds."""
    tests = [_test(word) for word in text.lower().split()]
    return tuple(row for row in rows if all(test(row) for test in tests))


def _test(word: str) -> Test:
    """What one word asks; a word that is no comparison is looked for in every text of the row."""
    match = _COMPARISON.match(word)
    if match is None:
        return lambda row: any(word in text(row).lower() for text in _TEXTS.values())
    field, sign, value = match["field"], match["sign"], match["value"]
    if field in _TEXTS and sign == "=":
        return lambda row: value in _TEXTS[field](row).lower()
    if field in _NUMBERS and _is_number(value):
        return lambda row: _compares(_NUMBERS[field](row), sign, float(value))
    return lambda row: False


def _compares(number: float | None, sign: str, value: float) -> bool:
    if number is None:
        return False
    return number > value if sign == ">" else number < value if sign == "<" else number == value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
