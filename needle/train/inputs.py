"""What a fine-tuning run reads: the base, the tokenizer and the examples, checked against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from needle.config import FinetuneSettings
from needle.data.examples import ExampleFile, read_examples
from needle.data.locate import locate_base, locate_data, locate_tokenizer
from needle.data.order import training_order
from needle.data.tokenizer import TokenizedExample, Tokenizer, cut, tokenize
from needle.errors import InputError
from needle.model.architecture import TransformerConfig
from needle.model.checkpoints import load_checkpoint
from needle.train.batches import BatchPlan, plan_batches
from needle.train.step import Params

_LISTED = 20


@dataclass(frozen=True, eq=False)
class Base:
    """A base model; `name` is what an adapter remembers of it."""

    name: str
    params: Params
    config: TransformerConfig


@dataclass(frozen=True)
class Selected:
    """The examples to train on. `skipped` are lines left out; `notes` are lines of talk for the log."""

    examples: tuple[TokenizedExample, ...]
    skipped: tuple[int, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FinetuneInputs:
    """Everything a run reads. `digests` identify the content of each, by what a person calls it."""

    base: Base
    tokenizer: Path
    selected: Selected
    batches: BatchPlan
    digests: dict[str, str]


def read_inputs(settings: FinetuneSettings) -> FinetuneInputs:
    """Read and check every file. Raises InputError in words for a person."""
    path, name, _ = locate_base(settings)
    params, config = load_checkpoint(path)
    base = Base(name, params, config)
    tokenizer_path = locate_tokenizer(settings, path)
    tokenizer = Tokenizer.load(tokenizer_path)
    _check_vocabulary(tokenizer, base, tokenizer_path)
    read = read_examples(locate_data(settings))
    selected = select_examples(
        [tokenize(example, tokenizer) for example in read.examples],
        read,
        settings.max_len,
        settings.over_length,
    )
    order = training_order(len(selected.examples), settings.val_split, settings.seed, settings.epochs)
    batches = plan_batches(selected.examples, order, settings.batch_size)
    digests = {"the base model": _file_digest(path), "the data": _examples_digest(selected.examples)}
    return FinetuneInputs(base, tokenizer_path, selected, batches, digests)


def select_examples(
    tokenized: Sequence[TokenizedExample], read: ExampleFile, max_len: int, over_length: str
) -> Selected:
    """Apply the rule for examples over `max_len`: skip, cut or stop; nothing is left out without a word.

    An example that has nothing to learn after a cut is left out too: it would train on a loss of 0.
    """
    over = {example.line: len(example) for example in tokenized if len(example) > max_len}
    if over and over_length == "stop":
        raise InputError(
            f"{len(over)} examples are longer than {max_len} tokens: lines {_listed(over)}",
            where=read.path,
            remedy="raise --max-len, or choose --over-length skip or cut",
            field="max_len",
        )
    shortened = [cut(example, max_len) if over_length == "cut" else example for example in tokenized]
    kept = tuple(example for example in shortened if len(example) <= max_len and example.target_tokens)
    lines = {example.line for example in kept}
    skipped = tuple(example.line for example in tokenized if example.line not in lines)
    if not kept:
        raise InputError(
            f"no example fits in {max_len} tokens: the shortest of {len(tokenized)} has "
            f"{min(len(example) for example in tokenized)}",
            where=read.path,
            remedy="raise --max-len",
            field="max_len",
        )
    return Selected(kept, skipped, tuple(_notes(read, over, max_len, lines)))


def _notes(read: ExampleFile, over: dict[int, int], max_len: int, kept: set[int]) -> Iterable[str]:
    for problem in (*read.problems, *read.warnings):
        yield f"{read.path}:{problem.line}: {problem.text}"
    for line, length in over.items():
        fate = "cut" if line in kept else "left out"
        yield f"{read.path}:{line}: {fate}: {length} tokens, over the limit of {max_len}"


def _check_vocabulary(tokenizer: Tokenizer, base: Base, path: Path) -> None:
    if tokenizer.vocab_size > base.config.vocab_size:
        raise InputError(
            f"has {tokenizer.vocab_size} pieces, but {base.name} knows {base.config.vocab_size}",
            where=str(path),
            remedy="give the tokenizer that belongs to this base with --tokenizer",
            field="tokenizer",
        )


def _listed(lines: Iterable[int]) -> str:
    shown = [str(line) for line in lines]
    return ", ".join(shown[:_LISTED]) + (f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else "")


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _examples_digest(examples: Sequence[TokenizedExample]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.tokens.tobytes())
        digest.update(example.target_mask.tobytes())
    return digest.hexdigest()
