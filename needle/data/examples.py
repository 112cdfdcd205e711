"""Tool-calling examples: read from JSON lines, checked line by line, rendered as the model sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from needle.data.files import open_input, refuse_foreign, unreadable
from needle.data.foreign import HEAD_BYTES
from needle.data.lines import JsonLine, LineError, json_lines
from needle.data.markers import (
    CALL_END,
    CALL_START,
    THINK_END,
    THINK_START,
    TOOLS_END,
    TOOLS_START,
    TURN_END,
    TURN_START,
)
from needle.data.parsing import Example, Parsed, parse_example
from needle.errors import InputError

_WANTED = "a file of JSON lines, each an example with query, tools and answers"
_MANY_LINES = "write one object per line, for instance with: jq -c"


class LineProblem(NamedTuple):
    """Something about one line of a file, for a person; `line` counts from 1."""

    line: int
    text: str


@dataclass(frozen=True)
class ExampleFile:
    """A file as read. Lines with `problems` are left out; those with `warnings` are kept."""

    path: str
    size_bytes: int
    examples: list[Example] = field(default_factory=list)
    problems: list[LineProblem] = field(default_factory=list)
    warnings: list[LineProblem] = field(default_factory=list)


def read_examples(path: Path | str) -> ExampleFile:
    """Every usable example and every problem of a file, in file order.

    Raises InputError when the file is missing, empty, unreadable, or holds nothing to learn from.
    """
    with open_input(path, _WANTED) as file:
        try:
            head = file.read(HEAD_BYTES)
            size_bytes = file.seek(0, 2)
            file.seek(0)
            read = _read(file, str(path), size_bytes)
        except OSError as error:
            raise unreadable(path, error) from None
    _require_something_usable(read, head)
    return read


def render(example: Example) -> tuple[str, str]:
    """The prompt and the target of an example, as text (the model page, "Fine-tuning")."""
    system = f"{TURN_START}system\n{example.system}{TURN_END}\n" if example.system else ""
    thought = f"{THINK_START}\n{example.reasoning}\n{THINK_END}\n" if example.reasoning else ""
    prompt = (
        f"{system}{TURN_START}user\n{TOOLS_START}{example.tools}{TOOLS_END}\n"
        f"{example.query}{TURN_END}\n{TURN_START}assistant\n"
    )
    return prompt, f"{thought}{CALL_START}{example.answers}{CALL_END}{TURN_END}"


def _read(file: BinaryIO, path: str, size_bytes: int) -> ExampleFile:
    read = ExampleFile(path, size_bytes)
    any_answered = False
    for line in json_lines(file):
        try:
            parsed = _parse(line)
        except LineError as error:
            read.problems.append(LineProblem(line.number, str(error)))
            continue
        read.examples.append(parsed.example)
        read.warnings.extend(LineProblem(line.number, text) for text in parsed.warnings)
        any_answered = any_answered or parsed.answered
    if read.examples and not any_answered:
        raise _nothing_answered(read)
    return read


def _parse(line: JsonLine) -> Parsed:
    if line.problem:
        raise LineError(line.problem)
    return parse_example(line.value, line.number)


def _nothing_answered(read: ExampleFile) -> InputError:
    return InputError(
        "no example has 'answers': nothing would be learned but to call no tool",
        where=f"{read.path}:{read.examples[0].line}",
        remedy="add answers to each line: a list of {name, arguments}, [] where no tool fits",
    )


def _require_something_usable(read: ExampleFile, head: bytes) -> None:
    if read.examples:
        return
    refuse_foreign(read.path, head)
    if not read.problems:
        raise InputError("holds only blank lines", where=read.path, remedy=f"give {_WANTED}")
    first = read.problems[0]
    raise InputError(
        f"holds no usable example; line {first.line} {first.text}",
        where=f"{read.path}:{first.line}",
        remedy=_remedy(head),
    )


def _remedy(head: bytes) -> str:
    """What to do about a file without a usable line, as far as its beginning tells."""
    beginning = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if beginning.startswith(b"["):
        return f"this looks like one JSON array; {_MANY_LINES} '.[]'"
    first_line = beginning.split(b"\n", 1)[0].strip()
    if first_line == b"{":
        return f"this looks like JSON over several lines; {_MANY_LINES} ."
    return f"give {_WANTED}"


__all__ = ["Example", "ExampleFile", "LineProblem", "read_examples", "render"]
