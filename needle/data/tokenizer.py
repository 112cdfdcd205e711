"""Text to tokens, with the SentencePiece model that belongs to a checkpoint."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from needle.data.examples import Example, render
from needle.data.files import open_input, refuse_foreign, unreadable
from needle.data.markers import (
    BOS_ID,
    EOS_ID,
    FIRST_MARKER_ID,
    MARKER_SYMBOLS,
    MARKERS,
    PAD_ID,
    UNKNOWN_ID,
)
from needle.errors import InputError

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""What a space looks like in a piece."""
_WANTED = "a SentencePiece model with the Needle markers, such as the tokenizer.model of a checkpoint"


@dataclass(frozen=True, eq=False)
class TokenizedExample:
    """An example as the model sees it.

    tokens (T,) int32; target_mask (T,) bool, true where the loss counts.
    """

    tokens: npt.NDArray[np.int32]
    target_mask: npt.NDArray[np.bool_]
    line: int

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def target_tokens(self) -> int:
        """How many tokens are learned from it; an example cut within its prompt has none."""
        return int(self.target_mask.sum())


class Tokenizer:
    """Encodes and decodes text; markers in the text become the marker pieces."""

    def __init__(self, processor: _Processor) -> None:
        self._processor = processor

    @classmethod
    def load(cls, path: Path | str) -> Tokenizer:
        """Read a model file. Raises InputError when it is not a tokenizer a Needle model can use."""
        with open_input(path, _WANTED) as file:
            try:
                content = file.read()
            except OSError as error:
                raise unreadable(path, error) from None
        refuse_foreign(path, content)
        processor = _processor(content, path)
        problem = _not_needle(processor)
        if problem:
            raise InputError(
                f"is not a Needle tokenizer: {problem}", where=str(path), remedy=f"give {_WANTED}"
            )
        return cls(processor)

    @property
    def vocab_size(self) -> int:
        """Number of pieces; must equal the checkpoint's vocabulary."""
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, without beginning and end."""
        return self._processor.encode(text)

    @functools.cached_property
    def symbols(self) -> list[tuple[int, ...] | None]:
        """What each piece says, as `needle.data.grammar` counts symbols; None for one that says nothing."""
        return [_symbols(self._processor, number) for number in range(self.vocab_size)]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; those that stand for no text are dropped."""
        return self._processor.decode([int(token) for token in tokens])


def tokenize(example: Example, tokenizer: Tokenizer) -> TokenizedExample:
    """[BOS] + prompt + target + [EOS]; the loss counts on target and EOS (the model page, "Fine-tuning").

    Prompt and target are encoded apart, so each begins with its own dummy prefix.
    """
    prompt, target = (tokenizer.encode(text) for text in render(example))
    tokens = np.array([BOS_ID, *prompt, *target, EOS_ID], np.int32)
    return TokenizedExample(tokens, np.arange(len(tokens)) > len(prompt), example.line)


def cut(tokenized: TokenizedExample, length: int) -> TokenizedExample:
    """The first `length` tokens of an example: what is left may hold no target at all."""
    return TokenizedExample(tokenized.tokens[:length], tokenized.target_mask[:length], tokenized.line)


class _Processor(Protocol):
    """The part of SentencePiece's processor that is used here."""

    def get_piece_size(self) -> int: ...
    def id_to_piece(self, id: int) -> str: ...
    def pad_id(self) -> int: ...
    def eos_id(self) -> int: ...
    def bos_id(self) -> int: ...
    def is_byte(self, id: int) -> bool: ...
    def is_control(self, id: int) -> bool: ...
    def is_unknown(self, id: int) -> bool: ...
    def is_unused(self, id: int) -> bool: ...
    def unk_id(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, ids: list[int]) -> str: ...


def _processor(content: bytes, path: Path | str) -> _Processor:
    try:
        import sentencepiece
    except ImportError:
        raise InputError(
            "reading it needs SentencePiece, which is not installed",
            where=str(path),
            remedy="install it with: pip install 'needle-tui[train]'",
        ) from None
    processor = sentencepiece.SentencePieceProcessor()
    try:
        loaded = processor.load_from_serialized_proto(content)
    except RuntimeError:
        loaded = False
    if not loaded:
        raise InputError("is not a SentencePiece model", where=str(path), remedy=f"give {_WANTED}")
    return cast(_Processor, processor)


def _symbols(processor: _Processor, number: int) -> tuple[int, ...] | None:
    piece = processor.id_to_piece(number)
    if piece in MARKER_SYMBOLS:
        return (MARKER_SYMBOLS[piece],)
    if processor.is_byte(number):
        return (int(piece[1:-1], 16),)
    if processor.is_control(number) or processor.is_unknown(number) or processor.is_unused(number):
        return None
    return tuple(piece.replace(_SPACE, " ").encode())


def _not_needle(processor: _Processor) -> str:
    """How a model's special pieces differ from Needle's, empty when they do not."""
    names = ("pad", "end", "beginning", "unknown")
    found = (processor.pad_id(), processor.eos_id(), processor.bos_id(), processor.unk_id())
    for name, number, wanted in zip(names, found, (PAD_ID, EOS_ID, BOS_ID, UNKNOWN_ID), strict=True):
        if number != wanted:
            return f"its {name} piece is number {number}, not {wanted}"
    for number, marker in enumerate(MARKERS, FIRST_MARKER_ID):
        piece = processor.id_to_piece(number) if number < processor.get_piece_size() else "missing"
        if piece != marker:
            return f"piece {number} is {piece}, not {marker}"
    return ""
