"""A command line pasted into the cockpit: the settings it says."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from needle.cli import build_parser
from needle.commands.arguments import given_settings
from needle.config import TASKS, Value, to_json
from needle.errors import InputError

_BEGINNING = re.compile(
    r"\s*(?:[$%#>]\s+)?(?:[A-Za-z_]\w*=\S*\s+)*(?:uv\s+run\s+)?"
    r"(?:\S*/)?(?:needle|python[\d.]*\s+(?:-P\s+)?-m\s+needle(?:\.cli)?)\s+"
)
"""A prompt, variables, and the program in the forms people copy it in."""

_HELP = {"-h", "--help"}
"""They would print and end the program."""


class Pasted(NamedTuple):
    """The task and all its settings, those the command leaves out at their defaults."""

    task: str
    values: dict[str, Value]


def looks_like_a_command(text: str) -> bool:
    """Whether the text begins as a command line of `needle` does."""
    return _BEGINNING.match(text) is not None


def settings_of_command(text: str) -> Pasted:
    """What a pasted `needle TASK …` asks for. Raises InputError in words for anything else."""
    words = _words(text)
    task = words[0] if words else ""
    if task not in TASKS:
        raise InputError(
            f"`needle {task}` starts no training", remedy=f"paste a line of needle {', '.join(TASKS)}"
        )
    if not _HELP.isdisjoint(words):
        raise InputError("the pasted command asks for help, not for a run")
    parsed = build_parser().parse_all(words)
    given = given_settings(parsed, TASKS[task])
    settings = {name: value if isinstance(value, bool) else str(value) for name, value in given.items()}
    return Pasted(task, {**_starting_values(task, sample=getattr(parsed, "sample", False)), **settings})


def _words(text: str) -> list[str]:
    """The words after the program's name; a line continued by a backslash goes on."""
    beginning = _BEGINNING.match(text)
    if beginning is None:
        raise InputError("this is no command line of needle")
    rest = text[beginning.end() :].replace("\\\r\n", " ").replace("\\\n", " ")
    try:
        return shlex.split(rest.strip().splitlines()[0] if rest.strip() else "")
    except ValueError as error:
        raise InputError(f"the pasted command is cut short: {str(error).lower()}") from error


def _starting_values(task: str, *, sample: bool) -> dict[str, Value]:
    if not sample:
        return to_json(TASKS[task]())
    from needle.launch.sample import sample_settings

    return to_json(sample_settings())
