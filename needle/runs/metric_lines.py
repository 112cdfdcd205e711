"""Metrics lines to arrays, a block of lines at a time.

A block is decoded as one JSON array of a record type made for the names seen so far: four times as fast
as a line at a time. A block that does not fit (a new name, garbage) is taken line by line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import numpy as np

from needle.runs.columns import Floats, Integers
from needle.runs.metrics import MetricBlock
from needle.runs.record import UNREADABLE

RESERVED = ("step", "time", "attempt")
_USUAL = (
    "loss",
    "lr",
    "grad_norm",
    "step_ms",
    "data_ms",
    "transfer_ms",
    "compute_ms",
    "tokens",
    "tokens_per_s",
)
_MOST_FAST_NAMES = 256
_LARGEST = 2**53
_NEWLINE = ord("\n")

_Step = Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
_Number = float | str | None


class MetricDecoder:
    """Decodes blocks of complete lines and remembers the names they use."""

    def __init__(self) -> None:
        self.garbage_lines = 0
        self._numeric: dict[str, None] = dict.fromkeys(_USUAL)
        self._ignored: dict[str, None] = {}
        self._prepare()

    def decode(self, block: bytes) -> MetricBlock:
        """The rows of complete lines, each ending with a newline. Garbage lines are counted and left out."""
        try:
            rows = self._decoder.decode(b"[" + block[:-1].replace(b"\n", b",") + b"]")
            if len(rows) == np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE):
                return self._block(rows)
        except (ValueError, *UNREADABLE):
            pass
        return self._decode_slowly(block)

    def _prepare(self) -> None:
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
            ("step", _Step),
            ("time", _Number, None),
            ("attempt", _Step, 1),
            *((name, _Number, None) for name in self._numeric),
            *((name, object, None) for name in self._ignored),
        ]
        renamed = {f"f{index}": entry[0] for index, entry in enumerate(fields)}
        row = msgspec.defstruct(
            "Row",
            [(f"f{index}", *entry[1:]) for index, entry in enumerate(fields)],
            rename=renamed,
            forbid_unknown_fields=True,
            gc=False,
        )
        self._names = [*RESERVED, *self._numeric]
        self._getters = [attrgetter(f"f{index}") for index in range(len(self._names))]
        self._decoder = msgspec.json.Decoder(list[row])  # type: ignore[valid-type]

    def _block(self, rows: Sequence[object]) -> MetricBlock:
        # An absent value is None, which numpy takes as NaN; a reported "NaN" is told apart below.
        arrays = [np.fromiter(map(getter, rows), np.float64, len(rows)) for getter in self._getters]
        columns: dict[str, tuple[Integers | None, Floats]] = {}
        for name, getter, values in list(zip(self._names, self._getters, arrays, strict=True))[
            len(RESERVED) :
        ]:
            absent = [row for row in np.flatnonzero(np.isnan(values)).tolist() if getter(rows[row]) is None]
            if not absent:
                columns[name] = (None, values)
            elif len(absent) < len(values):
                present = np.delete(np.arange(len(values)), absent)
                columns[name] = (present, values[present])
        return MetricBlock(arrays[0].astype(np.int64), arrays[2].astype(np.int64), arrays[1], columns)

    def _decode_slowly(self, block: bytes) -> MetricBlock:
        parsed = []
        for line in block.split(b"\n"):
            if line.strip():
                row = parse_line(line)
                self.garbage_lines += row is None
                if row is not None:
                    parsed.append(row)
        self._learn(parsed)
        return _block_of(parsed)

    def _learn(self, rows: list[tuple[dict[str, float], list[str]]]) -> None:
        before = len(self._numeric), len(self._ignored)
        for numbers, others in rows:
            self._numeric.update(dict.fromkeys(name for name in numbers if name not in RESERVED))
            self._ignored.update(dict.fromkeys(others))
        for name in self._numeric:
            self._ignored.pop(name, None)
        if before != (len(self._numeric), len(self._ignored)) and sum(before) < _MOST_FAST_NAMES:
            self._prepare()


def parse_line(line: bytes) -> tuple[dict[str, float], list[str]] | None:
    """The numbers of one line by name, and the names whose values are no numbers; None for garbage.

    A line glued to the half-written one before it (a crash, then a new attempt) is still found.
    """
    fields = _object(line)
    place = line.rfind(b'{"')
    if fields is None and place > 0:
        fields = _object(line[place:])
    if fields is None:
        return None
    numbers: dict[str, float] = {}
    others: list[str] = []
    for name, value in fields.items():
        number = _number(value)
        if number is not None:
            numbers[name] = number
        elif value is not None and name not in RESERVED:
            others.append(name)
    step, attempt = numbers.get("step"), numbers.setdefault("attempt", 1.0)
    if step is None or not all(abs(n) <= _LARGEST and n.is_integer() for n in (step, attempt)):
        return None
    return numbers, others


def _object(line: bytes) -> dict[str, object] | None:
    """A JSON object, read as Python's own writer may write it: with bare NaN and Infinity."""
    try:
        found = msgspec.json.decode(line)
    except UNREADABLE:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _block_of(rows: list[tuple[dict[str, float], list[str]]]) -> MetricBlock:
    places: dict[str, list[int]] = {}
    values: dict[str, list[float]] = {}
    for index, (numbers, _) in enumerate(rows):
        for name, value in numbers.items():
            places.setdefault(name, []).append(index)
            values.setdefault(name, []).append(value)
    columns: dict[str, tuple[Integers | None, Floats]] = {
        name: (
            np.array(places[name], np.int64) if len(places[name]) < len(rows) else None,
            np.array(values[name]),
        )
        for name in values
        if name not in RESERVED
    }
    return MetricBlock(
        np.array(values.get("step", []), np.float64).astype(np.int64),
        np.array(values.get("attempt", []), np.float64).astype(np.int64),
        np.array([numbers.get("time", math.nan) for numbers, _ in rows], np.float64),
        columns,
    )
