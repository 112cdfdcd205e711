"""What a fine-tuning run reads: the base, the tokenizer and the examples, checked against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from needle.config import FinetuneSettings
from needle.data.examples import Example, read_examples
from needle.data.locate import locate_base, locate_data, locate_tokenizer
from needle.data.order import training_order
from needle.data.selection import Selected, check_vocabulary, select_examples
from needle.data.tokenizer import TokenizedExample, Tokenizer, tokenize
from needle.model.architecture import TransformerConfig
from needle.model.checkpoints import load_checkpoint
from needle.train.batches import BatchPlan, plan_batches
from needle.train.step import Params


@dataclass(frozen=True, eq=False)
class Base:
    """A base model; `name` is what an adapter remembers of it."""

    name: str
    params: Params
    config: TransformerConfig


@dataclass(frozen=True, eq=False)
class FinetuneInputs:
    """Everything a run reads. `digests` identify the content of each, by what a person calls it.

    `validation` are the examples that are held out, as text.
    """

    base: Base
    tokenizer: Path
    selected: Selected
    validation: tuple[Example, ...]
    batches: BatchPlan
    digests: dict[str, str]


def read_inputs(settings: FinetuneSettings) -> FinetuneInputs:
    """Read and check every file. Raises InputError in words for a person."""
    path, name, _ = locate_base(settings)
    params, config = load_checkpoint(path)
    base = Base(name, params, config)
    tokenizer_path = locate_tokenizer(settings, path)
    tokenizer = Tokenizer.load(tokenizer_path)
    check_vocabulary(tokenizer, tokenizer_path, base.name, config.vocab_size)
    read = read_examples(locate_data(settings))
    selected = select_examples(
        [tokenize(example, tokenizer) for example in read.examples],
        read,
        settings.max_len,
        settings.over_length,
    )
    order = training_order(len(selected.examples), settings.val_split, settings.seed, settings.epochs)
    batches = plan_batches(selected.examples, order, settings.batch_size, settings.micro_batch_size)
    by_line = {example.line: example for example in read.examples}
    validation = tuple(by_line[selected.examples[index].line] for index in order.validation)
    digests = {"the base model": _file_digest(path), "the data": _examples_digest(selected.examples)}
    return FinetuneInputs(base, tokenizer_path, selected, validation, batches, digests)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _examples_digest(examples: Sequence[TokenizedExample]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.tokens.tobytes())
        digest.update(example.target_mask.tobytes())
    return digest.hexdigest()
