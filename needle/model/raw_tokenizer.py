"""The tokenizer inside an archive: its pieces as a table, instead of a SentencePiece file. No JAX."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from needle.data.files import open_input, unreadable
from needle.data.markers import BOS_ID, EOS_ID, PAD_ID, UNKNOWN_ID
from needle.data.tokenizer import Tokenizer
from needle.errors import InputError

# Kinds of pieces: SentencePiece's number -> the archive's (normal, unknown, control, marker, byte).
_KINDS = {1: 0, 2: 1, 3: 2, 4: 3, 6: 4}
_NORMAL = 1
_HEADER = struct.Struct("<5IBBH")
_PIECE = struct.Struct("<fBH")

# Field numbers of a SentencePiece file, from its published schema (sentencepiece_model.proto).
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _SCORE, _KIND = 1, 2, 3
_BYTE_FALLBACK, _ADD_DUMMY_PREFIX = 35, 3
_VARINT, _EIGHT_BYTES, _TEXT_OR_MESSAGE, _FOUR_BYTES = 0, 1, 2, 5


class Piece(NamedTuple):
    """One token: its text, how likely it is, and its kind in an archive."""

    text: str
    score: float
    kind: int


def raw_tokenizer(path: Path | str, vocab_size: int) -> bytes:
    """The archive's form of a SentencePiece model file.

    Raises InputError when it is not a Needle tokenizer, or not one of this many pieces.
    """
    tokenizer = Tokenizer.load(path)
    if tokenizer.vocab_size != vocab_size:
        raise InputError(
            f"has {tokenizer.vocab_size:,} pieces, but the model has a vocabulary of {vocab_size:,}",
            where=str(path),
            remedy="give the tokenizer.model that belongs to the checkpoint, with --tokenizer",
        )
    with open_input(path, "a SentencePiece model") as file:
        try:
            content = file.read()
        except OSError as error:
            raise unreadable(path, error) from None
    try:
        return _raw(content)
    except ValueError as error:
        raise InputError(f"cannot be put in an archive: {error}", where=str(path)) from None


def read_raw_tokenizer(content: bytes) -> list[Piece]:
    """The pieces of an archive's tokenizer. Raises ValueError when it is not whole."""
    try:
        count, *special, _, _, _ = _HEADER.unpack_from(content)
        if special != [PAD_ID, EOS_ID, BOS_ID, UNKNOWN_ID]:
            raise ValueError(f"the special pieces of its tokenizer are {special}")
        pieces, position = [], _HEADER.size
        for _ in range(count):
            score, kind, length = _PIECE.unpack_from(content, position)
            position += _PIECE.size
            text = content[position : position + length]
            if len(text) != length:
                raise ValueError("a piece is cut short")
            pieces.append(Piece(text.decode(), score, kind))
            position += length
    except (struct.error, UnicodeDecodeError):
        raise ValueError("its tokenizer is cut short or damaged") from None
    if position != len(content):
        raise ValueError("its tokenizer has bytes after its end")
    return pieces


def _raw(content: bytes) -> bytes:
    pieces, byte_fallback, add_dummy_prefix = [], 0, 1
    for number, value in _fields(content):
        if number == _PIECES:
            pieces.append(_piece(_message(value)))
        elif number == _TRAINER:
            byte_fallback = int(dict(_fields(_message(value))).get(_BYTE_FALLBACK, byte_fallback))
        elif number == _NORMALIZER:
            add_dummy_prefix = int(dict(_fields(_message(value))).get(_ADD_DUMMY_PREFIX, add_dummy_prefix))
    header = _HEADER.pack(len(pieces), PAD_ID, EOS_ID, BOS_ID, UNKNOWN_ID, add_dummy_prefix, byte_fallback, 0)
    return header + b"".join(_packed(piece) for piece in pieces)


def _packed(piece: Piece) -> bytes:
    text = piece.text.encode()
    return _PIECE.pack(piece.score, piece.kind, len(text)) + text


def _piece(message: bytes) -> Piece:
    fields = dict(_fields(message))
    text, kind = _message(fields.get(_TEXT, b"")).decode(), fields.get(_KIND, _NORMAL)
    if not isinstance(kind, int) or kind not in _KINDS:
        raise ValueError(f"its piece {text!r} is of a kind ({kind!r}) that archives do not have")
    (score,) = struct.unpack("<f", _message(fields.get(_SCORE, bytes(4))))
    return Piece(text, score, _KINDS[kind])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of every field of a Protocol Buffers message: varints as int, the rest as bytes."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire == _TEXT_OR_MESSAGE:
            length, position = _varint(message, position)
        elif wire in (_FOUR_BYTES, _EIGHT_BYTES):
            length = 4 if wire == _FOUR_BYTES else 8
        else:
            raise ValueError("it is damaged")
        yield number, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("it is cut short")


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("it is damaged")
    return value
