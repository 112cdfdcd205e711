"""What can be known before a run starts: the data, the base, the tokenizer, the place for the result.

Everything that touches files is here, so that planning stays pure. Problems are collected by field, all at
once, in the words a form shows beside the field and a command prints.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from needle.config import FinetuneSettings, check, parse_value
from needle.config import fields_of as settings_of
from needle.data.base import BaseFacts, inspect_base
from needle.data.examples import ExampleFile, LineProblem, read_examples
from needle.data.locate import locate_base, locate_data, locate_tokenizer
from needle.errors import InputError
from needle.runs.record import Decision

Result = TypeVar("Result")

ADAPTER_SUFFIXES = (".safetensors", ".pkl")
_COUNTED_EXAMPLES = 20_000
_CHARACTERS_PER_TOKEN = 3.5
_MARKUP_TOKENS = 12


@dataclass(frozen=True)
class DataFacts:
    """A data file as checked. Lengths are in tokens; `counted` is False when they are estimates."""

    path: str
    size_bytes: int
    examples: int
    problems: tuple[LineProblem, ...]
    warnings: tuple[LineProblem, ...]
    longest: int
    total_tokens: int
    counted: bool
    over_length_lines: tuple[int, ...]


@dataclass(frozen=True)
class FinetuneFacts:
    """Everything about the files of a fine-tuning run. `problems` is by field of the settings."""

    data: DataFacts | None = None
    base: BaseFacts | None = None
    base_choice: Decision = field(default_factory=lambda: Decision("", "no base model chosen yet"))
    tokenizer: str = ""
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def usable_examples(self) -> int:
        """Examples that training will see when over-length ones are left out."""
        return self.data.examples - len(self.data.over_length_lines) if self.data else 0


def inspect_finetune(values: Mapping[str, object]) -> FinetuneFacts:
    """Look at every file these settings name; values may be text as typed. Never raises InputError."""
    problems = check(FinetuneSettings, values)
    settings = _sound(values, problems)
    located = _checked(problems, "checkpoint", lambda: locate_base(settings))
    base = tokenizer = None
    if located:
        base = _checked(problems, "checkpoint", lambda: inspect_base(located[0]))
        tokenizer = _checked(problems, "tokenizer", lambda: locate_tokenizer(settings, located[0]))
    base_choice = Decision(located[1], located[2]) if located else Decision(settings.checkpoint, "missing")
    data = _inspect_data(settings, tokenizer, problems) if "data" not in problems else None
    _check_out(settings, problems)
    _check_lengths(settings, data, base, problems)
    return FinetuneFacts(data, base, base_choice, str(tokenizer) if tokenizer else "", problems)


def require_sound(facts: FinetuneFacts) -> None:
    """Raise one InputError that says every problem, each by its flag."""
    if not facts.problems:
        return
    flags = {known.name: known.flag or known.name for known in settings_of(FinetuneSettings)}
    lines = [f"{flags.get(name, name)}: {text}" for name, text in facts.problems.items()]
    raise InputError("\n".join(lines), field=next(iter(facts.problems)))


def _sound(values: Mapping[str, object], problems: dict[str, str]) -> FinetuneSettings:
    """The settings with every unsound value at its default, so that the other files can be looked at."""
    fields = {known.name: known for known in settings_of(FinetuneSettings)}
    sound = {
        name: parse_value(fields[name], value)
        for name, value in values.items()
        if name in fields and name not in problems
    }
    return FinetuneSettings(**sound)  # type: ignore[arg-type]


def _inspect_data(
    settings: FinetuneSettings, tokenizer: Path | None, problems: dict[str, str]
) -> DataFacts | None:
    read = _checked(problems, "data", lambda: read_examples(locate_data(settings)))
    if read is None:
        return None
    lengths, counted = _lengths(read, tokenizer)
    over = tuple(line for line, length in lengths if length > settings.max_len)
    return DataFacts(
        path=settings.data,
        size_bytes=read.size_bytes,
        examples=len(read.examples),
        problems=tuple(read.problems),
        warnings=tuple(read.warnings),
        longest=max(length for _, length in lengths),
        total_tokens=sum(length for _, length in lengths),
        counted=counted,
        over_length_lines=over,
    )


def _lengths(read: ExampleFile, tokenizer: Path | None) -> tuple[list[tuple[int, int]], bool]:
    """(line, tokens) of every example; real where the tokenizer can run here, else from characters."""
    from needle.data.examples import render

    can_count = tokenizer is not None and importlib.util.find_spec("sentencepiece") is not None
    if can_count and len(read.examples) <= _COUNTED_EXAMPLES:
        from needle.data.tokenizer import Tokenizer, tokenize

        assert tokenizer is not None
        try:
            loaded = Tokenizer.load(tokenizer)
            return [(one.line, len(tokenize(one, loaded).tokens)) for one in read.examples], True
        except InputError:
            pass
    estimates = []
    for example in read.examples:
        characters = sum(len(part) for part in render(example))
        estimates.append((example.line, int(characters / _CHARACTERS_PER_TOKEN) + _MARKUP_TOKENS))
    return estimates, False


def _check_out(settings: FinetuneSettings, problems: dict[str, str]) -> None:
    if not settings.out or "out" in problems:
        return
    path = Path(settings.out).expanduser()
    if path.suffix not in ADAPTER_SUFFIXES:
        problems["out"] = f"{settings.out}: an adapter file ends in .safetensors or .pkl"
    elif path.is_dir():
        problems["out"] = f"{settings.out}: is a directory; name a file"
    elif path.exists() and not settings.overwrite:
        problems["out"] = f"{settings.out}: already exists; choose another name or --overwrite"
    elif not _can_be_made(path.parent):
        problems["out"] = f"{settings.out}: its directory cannot be written"


def _can_be_made(folder: Path) -> bool:
    """Whether a file can be put in this folder, which may not exist yet."""
    nearest = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    return nearest.is_dir() and os.access(nearest, os.W_OK)


def _check_lengths(
    settings: FinetuneSettings, data: DataFacts | None, base: BaseFacts | None, problems: dict[str, str]
) -> None:
    """Refuse when nothing would be left to train on, or when the person asked to be stopped."""
    if data is None or not data.counted or not data.over_length_lines:
        return
    over = data.over_length_lines
    listed = ", ".join(str(line) for line in over[:8]) + (", …" if len(over) > 8 else "")
    if settings.over_length == "stop":
        problems["max_len"] = (
            f"{len(over)} examples are longer than {settings.max_len} tokens (lines {listed})"
        )
    elif settings.over_length == "skip" and len(over) == data.examples:
        problems["max_len"] = (
            f"every example is longer than {settings.max_len} tokens (the longest has {data.longest}): "
            "nothing would be trained; raise max-len"
        )


def _checked(problems: dict[str, str], field_name: str, look: Callable[[], Result]) -> Result | None:
    """What `look` finds; None with the problem noted at the field when it is refused."""
    try:
        return look()
    except InputError as error:
        problems[field_name] = str(error).replace("\n  ", "; ")
        return None
