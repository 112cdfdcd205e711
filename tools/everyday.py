"""Everyday tools and ways to ask for them, read from `everyday_tools.txt`, which tells its own format."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.sample_phrases import Phrase, Row

Value = str | int | float | bool
_SLOT = re.compile(r"\{(\w+)\}")
_MEANT = re.compile(r"^(.*?)\s*\[([^]]+)\]$")
_JSON_TYPES = {"switch": "boolean", "small": "integer", "number": "number"}


@dataclass(frozen=True)
class Parameter:
    """An argument: the names it may go by (the first is its own), its kind, its choices if it has any."""

    names: tuple[str, ...]
    kind: str
    choices: tuple[str, ...]
    required: bool


@dataclass(frozen=True)
class EverydayTool:
    """A tool with the names it may go by and its phrases for training and held out."""

    names: tuple[str, ...]
    description: str
    parameters: tuple[Parameter, ...]
    phrases: tuple[Phrase, ...]
    held_out: tuple[Phrase, ...]


@dataclass(frozen=True)
class Everyday:
    """All of the file: tools to train on and held out, and talk that no tool answers, of both kinds."""

    tools: tuple[EverydayTool, ...]
    held_out_tools: tuple[EverydayTool, ...]
    talk: tuple[str, ...]
    held_out_talk: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    """What is said to use a tool, its schema as offered, the call that is meant, how each value follows."""

    said: str
    schema: Row
    call: Row
    reasons: list[str]


@cache
def everyday() -> Everyday:
    """What the file holds."""
    lines = (Path(__file__).parent / "everyday_tools.txt").read_text(encoding="utf-8").splitlines()
    told = [line for line in lines if line and not line.startswith("#")]
    talk = [_parts(line[2:], "|") for line in told if line.startswith("~ ")]
    held_out_talk = [_parts(line[2:], "|") for line in told if line.startswith("~?")]
    rest = [line for line in told if not line.startswith("~")]
    tools: dict[bool, list[EverydayTool]] = {False: [], True: []}
    for head, usual, new in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        tools[head.startswith("*")].append(_tool(head.lstrip("* "), usual, new))
    return Everyday(tuple(tools[False]), tuple(tools[True]), sum(talk, ()), sum(held_out_talk, ()))


def ask(
    tool: EverydayTool, generator: random.Random, value_of: Callable[[str], tuple[str, Value]],
    *, held_out: bool,
) -> Asked:  # fmt: skip
    """A request for a tool under names drawn for it; value_of(kind) gives (words, value)."""
    phrase = generator.choice(tool.held_out if held_out else tool.phrases)
    names = _drawn_names(tool, generator)
    said, reasons = phrase.text, []
    given: dict[str, Value] = dict(phrase.implied)
    for slot in _SLOT.findall(phrase.text):
        parameter = next(one for one in tool.parameters if one.names[0] == slot)
        words, value = value_of(parameter.kind)
        given[slot] = value
        said = said.replace("{" + slot + "}", words)
        meant = "" if words == str(value) else f" {value}"
        reasons.append(f"'{words}' -> {names[slot]}{meant}")
    arguments = {names[one.names[0]]: given[one.names[0]] for one in tool.parameters if one.names[0] in given}
    kept = [one for one in tool.parameters if one.names[0] in given or generator.random() < 0.7]
    schema = _schema(tool, kept, names, generator)
    return Asked(said, schema, {"name": schema["name"], "arguments": arguments}, reasons)


def offered_schema(tool: EverydayTool, generator: random.Random) -> Row:
    """A tool as it is declared where nobody asks for it."""
    return _schema(tool, tool.parameters, _drawn_names(tool, generator), generator)


def _drawn_names(tool: EverydayTool, generator: random.Random) -> dict[str, str]:
    drawn: dict[str, str] = {}
    for one in tool.parameters:
        free = [name for name in one.names if name not in drawn.values()]
        drawn[one.names[0]] = generator.choice(free)
    return drawn


def _schema(
    tool: EverydayTool, kept: list[Parameter] | tuple[Parameter, ...], names: dict[str, str],
    generator: random.Random,
) -> Row:  # fmt: skip
    properties = {
        names[one.names[0]]: {
            "type": _JSON_TYPES.get(one.kind, "string"),
            **({"enum": list(one.choices)} if one.choices else {}),
        }
        for one in kept
    }
    return {
        "name": generator.choice(tool.names),
        **({"description": tool.description} if generator.random() < 0.85 else {}),
        "parameters": {
            "type": "object",
            "properties": properties,
            "required": [names[one.names[0]] for one in kept if one.required],
        },
    }


def _tool(head: str, usual: str, new: str) -> EverydayTool:
    names, description, arguments = (part.strip() for part in head.split(" : "))
    parameters = tuple(_parameter(word) for word in arguments.split())
    assert (usual[:2], new[:2]) == ("> ", "? "), head
    tool = EverydayTool(
        _parts(names, "/"), description, parameters, _phrases(usual[2:], parameters),
        _phrases(new[2:], parameters),
    )  # fmt: skip
    known = {one.names[0] for one in parameters}
    for phrase in (*tool.phrases, *tool.held_out):
        assert set(_SLOT.findall(phrase.text)) | set(phrase.implied) <= known, phrase
    return tool


def _parameter(word: str) -> Parameter:
    names, kind = word.removesuffix("!").split("=")
    choices = _parts(kind, ",") if "," in kind else ()
    return Parameter(_parts(names, "/"), "choice" if choices else kind, choices, word.endswith("!"))


def _phrases(text: str, parameters: tuple[Parameter, ...]) -> tuple[Phrase, ...]:
    kinds = {one.names[0]: one.kind for one in parameters}
    phrases = []
    for part in _parts(text, "|"):
        found = _MEANT.match(part)
        if not found:
            phrases.append(Phrase(part))
            continue
        pairs = (meant.split("=") for meant in found[2].split(","))
        phrases.append(Phrase(found[1], {name: _meant(value, kinds[name]) for name, value in pairs}))
    return tuple(phrases)


def _meant(text: str, kind: str) -> Value:
    if kind == "switch":
        return text == "true"
    return int(text) if kind in ("small", "number") else text


def _parts(text: str, mark: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(mark))
