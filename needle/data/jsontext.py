"""Strict JSON, as training needs it: read without NaN or infinities, written in one canonical form."""

from __future__ import annotations

import json
import math
from typing import NoReturn, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class JsonError(ValueError):
    """Text that is not strict JSON; the message says why, for a person."""


def parse_json(text: str) -> Json:
    """The value of one JSON text. Raises JsonError, also for what would not survive being written again."""
    try:
        value: Json = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}") from None
    except RecursionError:
        raise JsonError("it is nested too deeply") from None
    except JsonError:
        raise
    except ValueError:
        raise JsonError("it holds a number of thousands of digits") from None
    return value


def canonical_json(value: Json) -> str:
    """The text the model sees: no spaces, no ASCII escapes. Raises JsonError for too deep a nesting."""
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise JsonError("it is nested too deeply") from None


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise JsonError(f"{text[:20]} is too large a number")
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object whose names are unique: with a name twice, which of the two counts is anyone's guess."""
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise JsonError(f"the name {twice[:40]!r} occurs twice in one object")
    return values


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_constant, object_pairs_hook=_unique)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False)
