"""What one line of a data file says: its fields checked one by one, or the reason why it cannot be used."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from typing import NamedTuple

from needle.data.chat import chat_record, is_chat
from needle.data.jsontext import Json, JsonError, canonical_json, parse_json
from needle.data.lines import LineError
from needle.data.markers import marker_in

_KNOWN = ("query", "tools", "answers", "function_calls", "reasoning", "system", "messages")
_CALL_KEYS = frozenset({"name", "arguments", "id", "type"})


@dataclass(frozen=True, slots=True)
class Example:
    """One example to learn from. `tools` and `answers` are canonical JSON text, `line` counts from 1."""

    query: str
    tools: str
    answers: str
    reasoning: str = ""
    system: str = ""
    line: int = 0


class Parsed(NamedTuple):
    """An example and what a person should know of it; `answered` is False when its line had no answers."""

    example: Example
    answered: bool
    warnings: list[str]


def parse_example(value: Json, line: int) -> Parsed:
    """The example one line's value stands for. Raises LineError with the reason when it cannot be used."""
    if not isinstance(value, dict):
        raise LineError(f"is {_kind(value)}, not an object with query, tools and answers")
    warnings: list[str] = []
    try:
        record = chat_record(value, warnings) if is_chat(value) else value
        return _parsed(record, line, warnings)
    except JsonError as error:
        raise LineError(f"cannot be used: {error}") from None
    except RecursionError:
        raise LineError("is nested too deeply") from None


def _parsed(record: dict[str, Json], line: int, warnings: list[str]) -> Parsed:
    query = _query(record)
    tools = _tools(record, warnings)
    calls = _answers(record, warnings)
    example = Example(
        query=query,
        # Examples mostly share their tools: interned, a large file costs little memory.
        tools=sys.intern(canonical_json(tools)),
        answers=canonical_json(calls or []),
        reasoning=_optional_text(record, "reasoning"),
        system=_optional_text(record, "system"),
        line=line,
    )
    warnings.extend(_unknown_tool(tools, calls or []))
    warnings.extend(_markup(example))
    return Parsed(example, calls is not None, warnings)


def _query(record: dict[str, Json]) -> str:
    if "query" not in record:
        raise LineError(_absent(record, "query"))
    query = record["query"]
    if not isinstance(query, str):
        raise LineError(f"'query' is {_kind(query)}, not text")
    if not query.strip():
        raise LineError("'query' is empty")
    return query


def _tools(record: dict[str, Json], warnings: list[str]) -> list[Json]:
    if "tools" not in record:
        _refuse_near_miss(record, "tools")
        warnings.append("has no 'tools': taken as none")
        return []
    return [_tool(tool, number) for number, tool in enumerate(_list(record["tools"], "tools"), 1)]


def _tool(tool: Json, number: int) -> Json:
    """One tool in the flat form; the form that wraps it in `function` is unwrapped."""
    if isinstance(tool, dict) and isinstance(tool.get("function"), dict) and "name" not in tool:
        tool = tool["function"]
    if not isinstance(tool, dict):
        raise LineError(f"tool {number} is {_kind(tool)}, not an object with a name")
    _name(tool, f"tool {number}")
    return tool


def _answers(record: dict[str, Json], warnings: list[str]) -> list[Json] | None:
    """The calls, each {name, arguments}; None when the line has none at all, not even an empty list."""
    given = [name for name in ("answers", "function_calls") if name in record]
    if not given:
        for name in ("answers", "function_calls"):
            _refuse_near_miss(record, name)
        warnings.append("has no 'answers': taken as [], no tool to call")
        return None
    found: list[list[Json]] = []
    for name in given:
        calls = _list(record[name], name, null_hint="; write [] where no tool fits")
        found.append([_call(call, number, warnings) for number, call in enumerate(calls, 1)])
    if found[0] != found[-1]:
        raise LineError("'answers' and 'function_calls' differ; keep one of them")
    return found[0]


def _call(call: Json, number: int, warnings: list[str]) -> Json:
    if isinstance(call, dict) and isinstance(call.get("function"), dict) and "name" not in call:
        call = call["function"]
    if not isinstance(call, dict):
        raise LineError(f"answer {number} is {_kind(call)}, not an object with name and arguments")
    name = _name(call, f"answer {number}")
    if "arguments" not in call:
        raise LineError(
            f"answer {number} ({name[:40]!r}) has no 'arguments'; write {{}} where there are none"
        )
    left_out = sorted(set(call) - _CALL_KEYS)
    if left_out:
        warnings.append(
            f"answer {number}: {left_out[0][:40]!r} is left out; only name and arguments are learned"
        )
    return {"name": name, "arguments": _arguments(call["arguments"], f"answer {number} ({name[:40]!r})")}


def _arguments(value: Json, whose: str) -> Json:
    if isinstance(value, str):
        value = _decoded(value, f"the arguments of {whose}") if value.strip() else {}
    if not isinstance(value, dict):
        raise LineError(f"the arguments of {whose} are {_kind(value)}, not an object")
    return value


def _list(value: Json, name: str, null_hint: str = "; write [] for none") -> list[Json]:
    """A list, also when it comes as JSON text."""
    if isinstance(value, str):
        value = _decoded(value, f"'{name}'")
        if isinstance(value, str):
            raise LineError(f"'{name}' is JSON text inside JSON text; encode it once")
    if value is None:
        raise LineError(f"'{name}' is null{null_hint}")
    if isinstance(value, dict):
        raise LineError(f"'{name}' is one object, not a list; put it in [ ]")
    if not isinstance(value, list):
        raise LineError(f"'{name}' is {_kind(value)}, not a list")
    return value


def _decoded(text: str, whose: str) -> Json:
    try:
        return parse_json(text)
    except JsonError as error:
        raise LineError(f"{whose}: text that is not JSON: {error}") from None


def _name(holder: dict[str, Json], whose: str) -> str:
    name = holder.get("name")
    if not isinstance(name, str) or not name.strip():
        raise LineError(f"{whose} has no name")
    return name


def _optional_text(record: dict[str, Json], name: str) -> str:
    """Text as written; absent, null and blank are the same as empty."""
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LineError(f"'{name}' is {_kind(value)}, not text")
    return value if value.strip() else ""


def _unknown_tool(tools: list[Json], calls: list[Json]) -> list[str]:
    offered = {tool["name"] for tool in tools if isinstance(tool, dict)}
    called = [str(call["name"]) for call in calls if isinstance(call, dict)]
    unknown = [name for name in called if name not in offered]
    return [f"calls {unknown[0][:40]!r}, which is not one of its tools"] if unknown else []


def _markup(example: Example) -> list[str]:
    """Warnings of text that the tokenizer reads as markup. Raises LineError for text without a UTF-8 form."""
    warnings = []
    for name in ("query", "tools", "answers", "reasoning", "system"):
        text: str = getattr(example, name)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise LineError(f"'{name}' holds half of a surrogate pair, which is not a character") from None
        if marker := marker_in(text):
            warnings.append(f"'{name}' holds {marker}, which is read as markup")
    return warnings


def _absent(record: dict[str, Json], name: str) -> str:
    _refuse_near_miss(record, name)
    keys = ", ".join(repr(key[:40]) for key in list(record)[:6]) or "none"
    return f"has no '{name}'; its names are: {keys}"


def _refuse_near_miss(record: dict[str, Json], name: str) -> None:
    unknown = {key.lower(): key for key in record if key not in _KNOWN and len(key) <= 2 * len(name)}
    close = difflib.get_close_matches(name, unknown, n=1, cutoff=0.8)
    if close:
        raise LineError(f"has no '{name}' but {unknown[close[0]]!r}; rename it to '{name}'")


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"
