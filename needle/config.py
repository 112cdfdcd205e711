"""One definition of every task's settings.

A task is a frozen dataclass; each field is `Annotated[type, Setting(...)]`. The command line, the form,
the checks, the help and `run.json` are all derived from it, so a limit or a default is said once.
"""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from needle.errors import InputError
from needle.setting import Field, FieldKind, Setting, Value, parse_value, value_text

LORA_TARGETS = ("gate", "k", "out", "q", "v")
"""The attention kernels of the stacked layers, by the short name of their projection."""


@dataclass(frozen=True)
class RunSettings:
    """What every task has: where and how to compute."""

    name: Annotated[str, Setting("a name for the run, shown in every list", group="Run", advanced=True)] = ""
    backend: Annotated[
        str,
        Setting("auto, or the one JAX platform to use: cpu, cuda, rocm, tpu, METAL", group="Compute"),
    ] = "auto"
    python: Annotated[
        str,
        Setting(
            "interpreter that trains: a name `needle devices` shows, or a path; empty: the best at hand",
            path=True,
            group="Compute",
            advanced=True,
        ),
    ] = ""
    devices: Annotated[
        str,
        Setting(
            "devices to use, by number, id or UUID, with commas; empty: the first",
            group="Compute",
            advanced=True,
        ),
    ] = ""
    xla_flags: Annotated[
        str,
        Setting("XLA flags for this run, beside those in XLA_FLAGS", group="Compute", advanced=True),
    ] = ""
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        Setting("number format of the computation; what is trained stays float32", group="Compute"),
    ] = "auto"
    attention: Annotated[
        Literal["auto", "xla", "cudnn", "manual"],
        Setting("attention kernel; auto takes the fastest that is right here", group="Compute"),
    ] = "auto"
    placement: Annotated[
        Literal["auto", "device", "host"],
        Setting("where the data set lives: device memory or host RAM", group="Compute"),
    ] = "auto"


@dataclass(frozen=True)
class FinetuneSettings(RunSettings):
    """LoRA fine-tuning of a Needle model on tool-calling examples."""

    data: Annotated[
        str,
        Setting("JSONL file of examples: query, tools, answers", positional=True, path=True, group="Data"),
    ] = ""
    checkpoint: Annotated[
        str,
        Setting(
            "base model file; empty: needle2 in the checkpoint directory, else the embedded sample",
            path=True,
            group="Data",
        ),
    ] = ""
    checkpoint_dir: Annotated[
        str, Setting("where base models are looked for", path=True, group="Data", advanced=True)
    ] = "checkpoints"
    tokenizer: Annotated[
        str,
        Setting(
            "SentencePiece model; empty: tokenizer.model beside the base",
            path=True,
            group="Data",
            advanced=True,
        ),
    ] = ""
    out: Annotated[
        str,
        Setting(
            "adapter file, .safetensors or .pkl; empty: inside the run directory", path=True, group="Data"
        ),
    ] = ""
    overwrite: Annotated[
        bool, Setting("replace an adapter that already exists at --out", group="Data", advanced=True)
    ] = False
    epochs: Annotated[int, Setting("passes over the training examples", least=1, most=10_000)] = 3
    batch_size: Annotated[
        int, Setting("examples in one optimiser step", unit="examples", least=1, most=4096)
    ] = 16
    micro_batch_size: Annotated[
        int,
        Setting(
            "examples computed at once, their gradients added up to one step; 0: the whole batch",
            unit="examples",
            least=0,
            most=4096,
            advanced=True,
        ),
    ] = 0
    lr: Annotated[
        float, Setting("peak learning rate; warms up, then decays to 0 by a cosine", above=0, most=1)
    ] = 1e-4
    lora_rank: Annotated[int, Setting("rank of the adapter matrices", least=1, most=1024)] = 16
    lora_alpha: Annotated[float, Setting("adapter scale is alpha / rank", above=0, most=65536)] = 32
    lora_targets: Annotated[
        str,
        Setting("attention kernels that get an adapter, with commas", members=LORA_TARGETS, advanced=True),
    ] = ",".join(LORA_TARGETS)
    qat: Annotated[
        Literal["auto", "none", "2", "4"],
        Setting("bits the weights are rounded to while training; auto: those the model ships with"),
    ] = "auto"
    max_len: Annotated[
        int, Setting("longest example kept; longer ones are listed", unit="tokens", least=16, most=131_072)
    ] = 1024
    over_length: Annotated[
        Literal["skip", "cut", "stop"],
        Setting(
            "examples over max-len: leave out, cut at the end, or refuse to start",
            group="Data",
            advanced=True,
        ),
    ] = "skip"
    val_split: Annotated[
        float, Setting("share of the examples held out for validation", least=0, below=1)
    ] = 0.1
    eval_every: Annotated[
        int,
        Setting(
            "steps from one validation loss to the next; 0: at the end of each epoch",
            unit="steps",
            least=0,
            most=10_000_000,
            advanced=True,
        ),
    ] = 0
    keep: Annotated[
        Literal["best", "last"],
        Setting("the adapter a run ends with: of the lowest validation loss, or of the last step"),
    ] = "best"
    patience: Annotated[
        int,
        Setting(
            "stop after so many validation losses in a row without a lower one; 0: never",
            least=0,
            most=10_000,
        ),
    ] = 0
    eval: Annotated[
        bool, Setting("at the end, score base and tuned model on the validation examples", advanced=True)
    ] = True
    seed: Annotated[int, Setting("seed of the split, the order and the adapter", least=0, most=2**31 - 1)] = 0


TASKS: dict[str, type[RunSettings]] = {"finetune": FinetuneSettings}


def fields_of(task: type[RunSettings]) -> tuple[Field, ...]:
    """Every setting of a task; positionals first, then the task's own, then the shared ones."""
    hints = typing.get_type_hints(task, include_extras=True)
    shared = {field.name for field in dataclasses.fields(RunSettings)}
    found = [_field(field.name, hints[field.name], field.default) for field in dataclasses.fields(task)]
    return tuple(sorted(found, key=lambda field: (not field.setting.positional, field.name in shared)))


def check(task: type[RunSettings], values: Mapping[str, object]) -> dict[str, str]:
    """Every problem at once, by field; empty when all is well. Values may still be text, as typed."""
    problems: dict[str, str] = {}
    known = {field.name: field for field in fields_of(task)}
    for name, value in values.items():
        if name not in known:
            problems[name] = f"no such setting{_suggestion(name, known)}"
            continue
        try:
            parse_value(known[name], value)
        except ValueError as error:
            problems[name] = str(error)
    return problems


def build(task: type[RunSettings], values: Mapping[str, object]) -> RunSettings:
    """Settings from typed or textual values. Raises InputError that names every problem."""
    problems = check(task, values)
    if problems:
        raise InputError("; ".join(f"{name.replace('_', '-')}: {text}" for name, text in problems.items()))
    known = {field.name: field for field in fields_of(task)}
    return task(**{name: parse_value(known[name], value) for name, value in values.items()})  # type: ignore[arg-type]


def to_json(settings: RunSettings) -> dict[str, Value]:
    """All settings by name, for `run.json`."""
    return dataclasses.asdict(settings)


def from_json(task_name: str, values: Mapping[str, object]) -> RunSettings:
    """Settings of a recorded run. A setting this version does not know is an error, not a shrug."""
    if task_name not in TASKS:
        raise InputError(f"unknown task {task_name!r}", remedy=f"known tasks: {', '.join(TASKS)}")
    return build(TASKS[task_name], values)


def to_arguments(task_name: str, settings: RunSettings) -> list[str]:
    """The command line that says these settings; what equals its default is left out."""
    arguments = ["needle", task_name]
    for field in fields_of(type(settings)):
        value = getattr(settings, field.name)
        if field.setting.positional:
            arguments.append(str(value))
        elif value != field.default:
            arguments.extend(_spoken(field, value))
    return arguments


def _spoken(field: Field, value: Value) -> list[str]:
    """A flag with its value; in one word where the value itself looks like a flag."""
    text = value_text(value)
    if field.kind == "switch":
        return [field.flag if value else field.negative_flag]
    return [f"{field.flag}={text}"] if text.startswith("-") else [field.flag, text]


def _field(name: str, hint: Any, default: Any) -> Field:
    kind_hint, setting = get_args(hint)
    choices = tuple(get_args(kind_hint)) if get_origin(kind_hint) is Literal else ()
    kinds: dict[object, FieldKind] = {int: "integer", float: "number", bool: "switch", str: "text"}
    kind = "choice" if choices else "path" if setting.path else kinds[kind_hint]
    return Field(name, kind, default, setting, choices)


def _suggestion(name: str, known: Mapping[str, Field]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


__all__ = [
    "LORA_TARGETS",
    "TASKS",
    "Field",
    "FinetuneSettings",
    "RunSettings",
    "Setting",
    "Value",
    "build",
    "check",
    "fields_of",
    "from_json",
    "parse_value",
    "to_arguments",
    "to_json",
    "value_text",
]
