"""What an answer may say, symbol by symbol: calls of the tools that are declared, in valid JSON.

A text is a sequence of symbols: its UTF-8 bytes, and for each marker one symbol of its own. A state is what
may still follow: a set of stacks, each of which is a list of parts to come, the next one last. A part is a
class of symbols or a `Rule`, which is one of several sequences of parts. No stack ever leads nowhere, so
that a text can always be brought to its end.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeAlias

from needle.data.jsontext import Json, canonical_json
from needle.data.markers import CALL_END, CALL_START, MARKER_SYMBOLS, THINK_END, THINK_START, TURN_END
from needle.data.schemas import Tool, declared_tools

Symbols: TypeAlias = "frozenset[int]"
Part: TypeAlias = "Symbols | Rule"
Sequence: TypeAlias = "tuple[Part, ...]"
Stack: TypeAlias = "tuple[Part, ...]"
State: TypeAlias = "frozenset[Stack]"

DEEPEST = 8
"""How deep a value that no schema describes may be nested."""


class Rule:
    """One of several sequences of parts, worked out when it is first needed; `shortest` ends it soonest."""

    def alternatives(self) -> tuple[Sequence, ...]:
        """The sequences it can be."""
        raise NotImplementedError

    @functools.cached_property
    def expanded(self) -> tuple[Sequence, ...]:
        """The alternatives, each with its first part last, as a stack holds them."""
        return tuple(sequence[::-1] for sequence in self.alternatives())

    @functools.cached_property
    def shortest(self) -> tuple[int, ...]:
        """A shortest text of it; one alternative at least leads to an end."""
        ends = [shortest(sequence) for sequence in self.alternatives() if self not in sequence]
        return min(ends, key=len)


def start(rule: Rule) -> State:
    """Before the first symbol of a text of `rule`."""
    return frozenset([(rule,)])


@functools.lru_cache(maxsize=65536)
def advance(state: State, symbol: int) -> State:
    """What may follow once `symbol` was said; the empty set when it may not be."""
    following: set[Stack] = set()
    waiting = list(state)
    while waiting:
        stack = waiting.pop()
        if not stack:
            continue
        *below, top = stack
        if isinstance(top, Rule):
            waiting.extend((*below, *sequence) for sequence in top.expanded)
        elif symbol in top:
            following.add(tuple(below))
    return frozenset(following)


def closing(state: State) -> tuple[int, ...]:
    """A shortest way to the end of the text."""
    return min((shortest(stack[::-1]) for stack in state), key=len)


def shortest(sequence: Sequence) -> tuple[int, ...]:
    """A shortest text of a sequence of parts."""
    found: list[int] = []
    for part in sequence:
        found.extend(part.shortest if isinstance(part, Rule) else (min(part),))
    return tuple(found)


@functools.lru_cache(maxsize=256)
def answer_rule(tools: str) -> Rule:
    """Answers that call any of the tools in canonical JSON, or none; reasoning before them is free."""
    calls = tuple(_call(tool) for tool in declared_tools(tools).values())
    thought = (*_marker(THINK_START), *_text("\n"), _THOUGHT, *_marker(THINK_END), *_text("\n"))
    before = _OneOf(((), _text(" ")))  # pieces may begin with a space, which decoding takes away
    reasoned = _OneOf(((), thought))
    said = (*_marker(CALL_START), *_text("["), _Repeated((_OneOf(calls),), "]") if calls else _text("]")[0])
    return _OneOf(((before, reasoned, *said, *_marker(CALL_END), *_marker(TURN_END)),))


class _OneOf(Rule):
    def __init__(self, sequences: Iterable[Sequence]) -> None:
        self._sequences = tuple(sequences)

    def alternatives(self) -> tuple[Sequence, ...]:
        return self._sequences


class _Repeated(Rule):
    """What follows an opening bracket or an item: more items, or the bracket that ends them."""

    def __init__(self, item: Sequence, end: str, *, first: bool = True) -> None:
        self._item, self._end, self._first = item, end, first

    def alternatives(self) -> tuple[Sequence, ...]:
        if self._first:
            return _text(self._end), (*self._item, _Repeated(self._item, self._end, first=False))
        return _text(self._end), (*_text(","), *self._item, self)


class _Members(Rule):
    """What follows "{" or a member of an object whose names are known: other members, or the end."""

    def __init__(self, values: dict[str, Rule], required: frozenset[str], *, first: bool) -> None:
        self._values, self._required, self._first = values, required, first

    def alternatives(self) -> tuple[Sequence, ...]:
        comma = () if self._first else _text(",")
        end: list[Sequence] = [] if self._required else [_text("}")]
        return (*end, *((*comma, *_text(f"{_quoted(name)}:"), value, self._without(name))
                        for name, value in self._values.items()))  # fmt: skip

    def _without(self, name: str) -> _Members:
        left = {other: value for other, value in self._values.items() if other != name}
        return _Members(left, self._required - {name}, first=False)

    @functools.cached_property
    def shortest(self) -> tuple[int, ...]:
        """What is required and nothing else."""
        text, comma = [], "" if self._first else ","
        for name in (name for name in self._values if name in self._required):
            text += [*f"{comma}{_quoted(name)}:".encode(), *self._values[name].shortest]
            comma = ","
        return (*text, *b"}")


class _Anything(Rule):
    """A JSON value of any kind, with at most `depth` lists and objects in each other."""

    def __init__(self, depth: int) -> None:
        self._depth = depth

    def alternatives(self) -> tuple[Sequence, ...]:
        plain: tuple[Sequence, ...] = ((_NUMBER,), (_STRING,), *(_text(word) for word in _WORDS))
        if not self._depth:
            return plain
        inner = _Anything(self._depth - 1)
        nested = (
            (*_text("["), _Repeated((inner,), "]")),
            (*_text("{"), _free_members(inner)),
        )
        return (*plain, *nested)


class _Characters(Rule):
    """Characters of a text, any number of them, and then `end`."""

    def __init__(self, plain: Symbols, escapes: tuple[Sequence, ...], end: Sequence) -> None:
        self._plain, self._escapes, self._end = plain, escapes, end

    def alternatives(self) -> tuple[Sequence, ...]:
        characters = ((self._plain,), *_BEYOND_ASCII, *self._escapes)
        return (self._end, *((*character, self) for character in characters))


class _Digits(Rule):
    """Any number of digits, none too."""

    def alternatives(self) -> tuple[Sequence, ...]:
        return (), (_DIGIT, self)


def _free_members(value: Rule) -> Rule:
    """What follows "{" of an object of any names."""
    return _Repeated((_STRING, *_text(":"), value), "}")


def _call(tool: Tool) -> Sequence:
    arguments = _object(tool.schema or {})
    return (*_text(f'{{"name":{_quoted(tool.name)},"arguments":'), arguments, *_text("}"))


def _value(schema: Any) -> Rule:
    """A JSON value as its schema wants it; what the schema says beyond `COVERED` is not looked at."""
    if not isinstance(schema, dict):
        return _ANYTHING
    if "const" in schema:
        return _OneOf((_text(canonical_json(schema["const"])),))
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return _OneOf(_text(canonical_json(value)) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if isinstance(schema.get(union), list) and schema[union]:
            return _OneOf((_value(one),) for one in schema[union])
    kind = schema.get("type", "object" if "properties" in schema else None)
    kinds = kind if isinstance(kind, list) else [kind]
    return _OneOf((_of_type(one, schema),) for one in kinds or [None])


def _of_type(kind: Any, schema: dict[str, Any]) -> Rule:
    if kind == "object":
        return _object(schema)
    if kind == "array":
        return _OneOf(((*_text("["), _Repeated((_value(schema.get("items")),), "]")),))
    if kind == "boolean":
        return _OneOf((_text("true"), _text("false")))
    if kind == "null":
        return _OneOf((_text("null"),))
    plain = {"string": _STRING, "integer": _INTEGER, "number": _NUMBER}
    return plain.get(str(kind), _ANYTHING)


def _object(schema: dict[str, Any]) -> Rule:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not (properties or schema.get("additionalProperties") is False):
        members: Rule = _free_members(_ANYTHING)
    else:
        required = schema.get("required")
        wanted = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        values = {str(name): _value(one) for name, one in properties.items()}
        values.update({name: _ANYTHING for name in wanted if name not in values})
        members = _Members(values, frozenset(wanted), first=True)
    return _OneOf(((*_text("{"), members),))


def not_covered(tools: str) -> list[str]:
    """The words of the tools' schemas that answers are not held to, in alphabetical order."""
    found: set[str] = set()
    waiting: list[Json] = [tool.schema for tool in declared_tools(tools).values()]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, list):
            waiting.extend(schema)
        elif isinstance(schema, dict):
            found |= schema.keys() - COVERED
            properties = schema.get("properties")
            waiting.extend(properties.values() if isinstance(properties, dict) else [])
            waiting.extend(schema.get(name) for name in ("items", "anyOf", "oneOf"))
    return sorted(found)


COVERED = frozenset((
    "type", "properties", "required", "enum", "const", "items", "anyOf", "additionalProperties",
    "description", "title", "default", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly",
))  # fmt: skip
"""Words of JSON Schema that an answer is held to, or that ask for nothing."""


def _text(text: str) -> Sequence:
    return tuple(frozenset([byte]) for byte in text.encode())


def _quoted(text: str) -> str:
    return canonical_json(text)


def _marker(marker: str) -> Sequence:
    return (frozenset([MARKER_SYMBOLS[marker]]),)


def _range(first: int, last: int) -> Symbols:
    return frozenset(range(first, last + 1))


_WORDS = ("true", "false", "null")
_ASCII = _range(0x20, 0x7E)
_DIGIT = frozenset(b"0123456789")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_TAIL = _range(0x80, 0xBF)
_BEYOND_ASCII: tuple[Sequence, ...] = (
    (_range(0xC2, 0xDF), _TAIL),
    (frozenset([0xE0]), _range(0xA0, 0xBF), _TAIL),
    (_range(0xE1, 0xEC) | {0xEE, 0xEF}, _TAIL, _TAIL),
    (frozenset([0xED]), _range(0x80, 0x9F), _TAIL),
    (frozenset([0xF0]), _range(0x90, 0xBF), _TAIL, _TAIL),
    (_range(0xF1, 0xF3), _TAIL, _TAIL, _TAIL),
    (frozenset([0xF4]), _range(0x80, 0x8F), _TAIL, _TAIL),
)
"""UTF-8 sequences of more than one byte, as the Unicode standard tables them."""
_BACKSLASH = _text("\\")
_ESCAPES: tuple[Sequence, ...] = (
    (*_BACKSLASH, frozenset(b'"\\/bfnrt')),
    (*_BACKSLASH, *_text("u"), _HEX - frozenset(b"dD"), _HEX, _HEX, _HEX),
    (*_BACKSLASH, *_text("u"), frozenset(b"dD"), frozenset(b"01234567"), _HEX, _HEX),
)
"""Without halves of surrogate pairs, which are no characters."""
_STRING = _OneOf(((*_text('"'), _Characters(_ASCII - frozenset(b'"\\'), _ESCAPES, _text('"'))),))
_THOUGHT = _Characters(_ASCII | {10}, (), _text("\n"))
_WHOLE = _OneOf((_text("0"), (frozenset(b"123456789"), _Digits())))
_SIGN = _OneOf(((), _text("-")))
_INTEGER = _OneOf(((_SIGN, _WHOLE),))
_NUMBER = _OneOf(((_SIGN, _WHOLE, _OneOf(((), (*_text("."), _DIGIT, _Digits())))),))
_ANYTHING = _Anything(DEEPEST)
