"""Which examples of a file are trained on, and what is said of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from needle.data.examples import ExampleFile
from needle.data.tokenizer import TokenizedExample, Tokenizer, cut
from needle.errors import InputError

_LISTED = 20


@dataclass(frozen=True)
class Selected:
    """The examples to train on. `skipped` are lines left out; `notes` are lines of talk for the log."""

    examples: tuple[TokenizedExample, ...]
    skipped: tuple[int, ...]
    notes: tuple[str, ...]


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


def check_vocabulary(tokenizer: Tokenizer, path: Path, base_name: str, vocab_size: int) -> None:
    """Raise InputError when the tokenizer makes tokens that the base does not know."""
    if tokenizer.vocab_size > vocab_size:
        raise InputError(
            f"has {tokenizer.vocab_size} pieces, but {base_name} knows {vocab_size}",
            where=str(path),
            remedy="give the tokenizer that belongs to this base with --tokenizer",
            field="tokenizer",
        )


def _listed(lines: Iterable[int]) -> str:
    shown = [str(line) for line in lines]
    return ", ".join(shown[:_LISTED]) + (f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else "")
