"""What can be known before a run starts: the data, the base, the tokenizer, the place for the result.

Everything that touches files is here, so that planning stays pure. Problems are collected by field, all at
once, in the words a form shows beside the field and a command prints.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from needle.config import FinetuneSettings, check, parse_value
from needle.config import fields_of as settings_of
from needle.data.base import BaseFacts, inspect_base
from needle.data.examples import ExampleFile, LineProblem, read_examples, render
from needle.data.locate import ADAPTER_SUFFIXES, locate_base, locate_data, locate_tokenizer
from needle.data.report import DataReport, report_on
from needle.data.selection import check_vocabulary, select_examples
from needle.data.tokenizer import TokenizedExample, Tokenizer, tokenize
from needle.errors import InputError
from needle.runs.record import Decision

if TYPE_CHECKING:
    from needle.devices.inventory import Inventory

Result = TypeVar("Result")

_COUNTED_EXAMPLES = 20_000
_CHARACTERS_PER_TOKEN = 3.5
_MARKUP_TOKENS = 12


@dataclass(frozen=True)
class DataFacts:
    """A data file as checked. Lengths are in tokens; `counted` is False when they are estimates.

    `examples` were read, `usable` of them are trained on; `over_length_lines` are longer than `max_len`.
    `longest` and `total_tokens` are of the usable ones.
    """

    path: str
    size_bytes: int
    examples: int
    usable: int
    problems: tuple[LineProblem, ...]
    warnings: tuple[LineProblem, ...]
    over_length_lines: tuple[int, ...]
    longest: int
    total_tokens: int
    counted: bool
    report: DataReport


@dataclass(frozen=True)
class FinetuneFacts:
    """Everything about the files of a fine-tuning run. `problems` is by field of the settings.

    `machine` is what is known of this machine as seen from the interpreter that was named, None for none.
    """

    data: DataFacts | None = None
    base: BaseFacts | None = None
    base_choice: Decision = field(default_factory=lambda: Decision("", "no base model chosen yet"))
    tokenizer: str = ""
    problems: dict[str, str] = field(default_factory=dict)
    machine: Inventory | None = None


def inspect_finetune(values: Mapping[str, object]) -> FinetuneFacts:
    """Look at every file these settings name; values may be text as typed. Never raises InputError."""
    problems = check(FinetuneSettings, values)
    settings = _sound(values, problems)
    located = _checked(problems, "checkpoint", lambda: locate_base(settings))
    base = tokenizer = None
    if located:
        base = _checked(problems, "checkpoint", lambda: inspect_base(located[0]))
        tokenizer = _checked(problems, "tokenizer", lambda: locate_tokenizer(settings, located[0]))
    loaded = _load_tokenizer(tokenizer, base, problems) if tokenizer and base else None
    base_choice = Decision(located[1], located[2]) if located else Decision(settings.checkpoint, "missing")
    data = _inspect_data(settings, loaded, problems)
    if data and settings.patience and int(data.usable * settings.val_split) < 1:
        problems.setdefault("patience", "nothing is held out to validate on; raise val-split, or patience 0")
    _check_out(settings, problems)
    machine = _look_at_interpreter(settings, problems)
    return FinetuneFacts(data, base, base_choice, str(tokenizer) if tokenizer else "", problems, machine)


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


def _load_tokenizer(path: Path, base: BaseFacts, problems: dict[str, str]) -> Tokenizer | None:
    """The tokenizer, checked against the base; None where the package that runs it is not installed here."""
    if importlib.util.find_spec("sentencepiece") is None:
        return None
    loaded = _checked(problems, "tokenizer", lambda: _tokenizer(path))
    if loaded:
        _checked(
            problems,
            "tokenizer",
            lambda: check_vocabulary(loaded, path, Path(base.path).name, base.vocab_size),
        )
    return loaded


def _inspect_data(
    settings: FinetuneSettings, tokenizer: Tokenizer | None, problems: dict[str, str]
) -> DataFacts | None:
    read = _checked(problems, "data", lambda: read_examples(locate_data(settings)))
    if read is None:
        return None
    if tokenizer is None or len(read.examples) > _COUNTED_EXAMPLES:
        return _estimated(settings, read, _contents(read, None).report)
    tokenized, report = _contents(read, tokenizer)
    selected = _checked(
        problems,
        "max_len",
        lambda: select_examples(tokenized, read, settings.max_len, settings.over_length),
    )
    lengths = [len(example) for example in (selected.examples if selected else tokenized)]
    over = tuple(example.line for example in tokenized if len(example) > settings.max_len)
    return _facts(settings, read, lengths, over, report, counted=True)


def _estimated(settings: FinetuneSettings, read: ExampleFile, report: DataReport) -> DataFacts:
    """Lengths from characters, for a machine without the tokenizer and for very long files."""
    estimates = {
        example.line: int(sum(map(len, render(example))) / _CHARACTERS_PER_TOKEN) + _MARKUP_TOKENS
        for example in read.examples
    }
    return _facts(settings, read, list(estimates.values()), (), report, counted=False)


def _facts(
    settings: FinetuneSettings, read: ExampleFile, lengths: list[int], over: tuple[int, ...],
    report: DataReport, *, counted: bool,
) -> DataFacts:  # fmt: skip
    return DataFacts(
        path=settings.data,
        size_bytes=read.size_bytes,
        examples=len(read.examples),
        usable=len(lengths),
        problems=tuple(read.problems),
        warnings=tuple(read.warnings),
        over_length_lines=over,
        longest=max(lengths),
        total_tokens=sum(lengths),
        counted=counted,
        report=report,
    )


@functools.lru_cache(maxsize=4)
def _tokenizer(path: Path) -> Tokenizer:
    return Tokenizer.load(path)


class _Contents(NamedTuple):
    """What a file holds, as tokens where there is a tokenizer."""

    tokenized: tuple[TokenizedExample, ...]
    report: DataReport


@functools.lru_cache(maxsize=2)
def _contents_of_file(path: Path, modified_ns: int, tokenizer: Tokenizer | None) -> _Contents:
    read = read_examples(path)
    tokenized = tuple(tokenize(example, tokenizer) for example in read.examples) if tokenizer else ()
    return _Contents(tokenized, report_on(read, tokenized))


def _contents(read: ExampleFile, tokenizer: Tokenizer | None) -> _Contents:
    """The examples looked at; a form that asks again after each key gets them from memory."""
    path = Path(read.path)
    return _contents_of_file(path, path.stat().st_mtime_ns, tokenizer)


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


def _look_at_interpreter(settings: FinetuneSettings, problems: dict[str, str]) -> Inventory | None:
    """The machine as seen from the interpreter that was named, and whether it knows the XLA flags."""
    if not (settings.python or settings.xla_flags):
        return None
    from needle.devices.inventory import inventory_from
    from needle.launch.flag_check import check_flags

    machine = _checked(problems, "python", lambda: inventory_from(settings.python))
    if machine is None:
        return None
    if settings.xla_flags:
        _checked(problems, "xla_flags", lambda: check_flags(settings.xla_flags, machine, os.environ))
    return machine if settings.python else None


def _checked(problems: dict[str, str], field_name: str, look: Callable[[], Result]) -> Result | None:
    """What `look` finds; None with the problem noted at the field when it is refused."""
    try:
        return look()
    except InputError as error:
        problems[field_name] = str(error).replace("\n  ", "; ")
        return None
