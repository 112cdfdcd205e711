"""What a model said, as calls; and how close they are to the calls that were right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from needle.data.jsontext import Json, JsonError, canonical_json, parse_json
from needle.data.markers import CALL_END, CALL_START, THINK_END, THINK_START

_THOUGHT = re.compile(f"{re.escape(THINK_START)}(.*?){re.escape(THINK_END)}", re.DOTALL)


class Call(NamedTuple):
    """One call of a tool."""

    name: str
    arguments: dict[str, Json]


@dataclass(frozen=True)
class Said:
    """A model's answer. `calls` is None where it holds none that can be read, for the reason in `problem`."""

    text: str
    reasoning: str
    calls: tuple[Call, ...] | None
    problem: str = ""


def parse_said(text: str) -> Said:
    """The reasoning and the calls of one answer, as text with its markers."""
    thought = _THOUGHT.search(text)
    reasoning = thought[1].strip() if thought else ""
    _, marker, rest = text.partition(CALL_START)
    if not marker:
        return Said(text, reasoning, None, f"has no {CALL_START}")
    inside, marker, _ = rest.partition(CALL_END)
    if not marker:
        return Said(text, reasoning, None, f"breaks off before {CALL_END}")
    try:
        return Said(text, reasoning, parse_calls(inside.strip()))
    except JsonError as error:
        return Said(text, reasoning, None, str(error))


def parse_calls(text: str) -> tuple[Call, ...]:
    """The calls of a JSON list. Raises JsonError for anything else."""
    value = parse_json(text)
    if not isinstance(value, list):
        raise JsonError("the calls are not a list")
    calls = []
    for number, call in enumerate(value, 1):
        name = call.get("name") if isinstance(call, dict) else None
        arguments = call.get("arguments", {}) if isinstance(call, dict) else None
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise JsonError(f"call {number} is not an object with a name and arguments")
        calls.append(Call(name, arguments))
    return tuple(calls)


@dataclass
class Scores:
    """Counts over examples; the properties are shares from 0 to 1, None where nothing was counted.

    `exact` and `right_tools` are of all examples. `arguments` are those of either side in examples whose
    tools were right and that call any; `off_topic` examples have no call to make, `on_topic` ones have.
    """

    examples: int = 0
    exact: int = 0
    right_tools: int = 0
    arguments: int = 0
    right_arguments: int = 0
    off_topic: int = 0
    false_calls: int = 0
    on_topic: int = 0
    missed_calls: int = 0
    unreadable: int = 0

    def add(self, expected: tuple[Call, ...], said: Said) -> bool:
        """Count one example; returns whether it was exactly right."""
        calls = said.calls or ()
        self.examples += 1
        self.unreadable += said.calls is None
        if expected:
            self.on_topic += 1
            self.missed_calls += not calls
        else:
            self.off_topic += 1
            self.false_calls += bool(calls)
        exact = said.calls is not None and same_calls(expected, calls)
        self.exact += exact
        if said.calls is not None and _names(expected) == _names(calls):
            self.right_tools += 1
            self._add_arguments(expected, calls)
        return exact

    def _add_arguments(self, expected: tuple[Call, ...], calls: tuple[Call, ...]) -> None:
        wanted, given = _arguments(expected), _arguments(calls)
        self.arguments += sum((wanted | given).values())
        self.right_arguments += sum((wanted & given).values())

    def facts(self) -> dict[str, int]:
        """The counts by name; `Scores(**facts)` is the same again."""
        return asdict(self)

    @property
    def exact_share(self) -> float | None:
        """Exact-call accuracy."""
        return _share(self.exact, self.examples)

    @property
    def tool_share(self) -> float | None:
        """Tool-choice accuracy."""
        return _share(self.right_tools, self.examples)

    @property
    def argument_share(self) -> float | None:
        """Argument accuracy: a missing, an unexpected and a wrong argument each count against it."""
        return _share(self.right_arguments, self.arguments)

    @property
    def false_call_share(self) -> float | None:
        """How often something is called where nothing should be."""
        return _share(self.false_calls, self.off_topic)

    @property
    def missed_call_share(self) -> float | None:
        """How often nothing is called where something should be."""
        return _share(self.missed_calls, self.on_topic)

    @property
    def unreadable_share(self) -> float | None:
        """How often the answer was no list of calls at all."""
        return _share(self.unreadable, self.examples)


def same_calls(expected: Iterable[Call], calls: Iterable[Call]) -> bool:
    """Whether both hold the same calls in any order; numbers by value, so that 5 is 5.0."""
    return Counter(map(_key, expected)) == Counter(map(_key, calls))


def _names(calls: tuple[Call, ...]) -> Counter[str]:
    return Counter(call.name for call in calls)


def _arguments(calls: tuple[Call, ...]) -> Counter[tuple[str, str, str]]:
    return Counter(
        (call.name, name, _value(value)) for call in calls for name, value in call.arguments.items()
    )


def _key(call: Call) -> tuple[str, str]:
    return call.name, _value(call.arguments)


def _value(value: Json) -> str:
    """A text that is equal for equal values, whatever the order of names and the form of numbers."""
    return canonical_json(_sorted(value))


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _share(count: int, of: int) -> float | None:
    return count / of if of else None
