"""Writing and reading `.cact` archives, the files the engine runs. No JAX."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from needle.errors import InputError, RunError
from needle.model.archive_layout import (
    ALIGNMENT,
    FLOAT16,
    HEADER_FORMAT,
    HEADS,
    MANIFEST,
    QUANTISED,
    RAW,
    RECORD_FORMAT,
    TOKENIZER,
    Entry,
    Record,
    entries,
    header_of,
)
from needle.model.bitmap import BitMap
from needle.model.codebooks import CODEBOOKS, GROUP_SIZE, codebook
from needle.model.configuration import TransformerConfig
from needle.model.parameters import flatten
from needle.model.quantize import Floats, pack, quantise
from needle.runs.record import write_atomically

HELD_CODEBOOKS = (2, 3, 4)
"""Widths whose levels an archive carries, in its order; ternary is known to the engine."""


class Tensor(NamedTuple):
    """One tensor as it was encoded. `bits` is None for what is not quantised."""

    path: str
    name: str
    bits: float | None
    parameters: int
    size_bytes: int


@dataclass(frozen=True)
class EncodedArchive:
    """The bytes of an archive and what they are made of."""

    content: bytes
    tensors: tuple[Tensor, ...]


def encode_archive(
    params: Mapping[str, Any], config: TransformerConfig, bit_map: BitMap, tokenizer: bytes
) -> EncodedArchive:
    """The archive of these parameters (nested, adapter merged) with a `raw_tokenizer`.

    Raises InputError, naming the parameter, for numbers that are not finite or beyond float16.
    """
    flat = flatten(params)
    heads = [head for head in HEADS if f"{head}/probes" in flat]
    tensors, records, contents = [], [], []
    for entry in entries(config, heads):
        bits = bit_map.bits_of(entry.name) if entry.name else None
        record, content = _encoded(entry, _stored_array(entry, flat, heads), bits)
        parameters = 0 if entry.path == MANIFEST else math.prod(entry.shape)
        tensors.append(Tensor(entry.path, entry.name, bits, parameters, len(content)))
        records.append(record)
        contents.append(content)
    tensors.append(Tensor(TOKENIZER, "", None, 0, len(tokenizer)))
    records.append(Record(RAW, (), 0, len(tokenizer)))
    return EncodedArchive(_laid_out(config, records, [*contents, tokenizer]), tuple(tensors))


def write_archive(path: Path | str, content: bytes) -> None:
    """Write an archive, as a whole or not at all. Raises RunError when it cannot be written."""
    try:
        write_atomically(Path(path), content)
    except OSError as error:
        raise RunError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="check that its directory exists, may be written, and has free space",
        ) from None


def held_levels() -> Floats:
    """The levels an archive carries, (28,) float32."""
    return np.concatenate([np.asarray(CODEBOOKS[bits].levels, np.float32) for bits in HELD_CODEBOOKS])


def _encoded(entry: Entry, array: Floats, bits: float | None) -> tuple[Record, bytes]:
    """(record without its offset, content) of one entry."""
    _require(np.isfinite(array).all(), entry, "numbers that are not finite")
    if bits is None:
        with np.errstate(over="ignore"):
            half = array.astype("<f2")
        _require(np.isfinite(half).all(), entry, "numbers beyond float16, whose largest is 65504")
        return Record(FLOAT16, entry.shape, 0, half.nbytes), half.tobytes()
    groups = quantise(array, bits)
    _require(np.isfinite(groups.norms).all(), entry, "numbers too large to be quantised")
    content = pack(groups.indices, bits) + groups.norms.astype("<f2").tobytes()
    return Record(QUANTISED, entry.shape, 0, len(content), GROUP_SIZE, codebook(bits).code), content


def _stored_array(entry: Entry, flat: Mapping[str, Any], heads: list[str]) -> Floats:
    """The entry's numbers, float32, in the shape and order of archives."""
    if entry.path == MANIFEST:
        return np.asarray([HEADS[head] for head in heads], np.float32)
    if entry.path.endswith("/bias") and entry.path not in flat:
        return np.zeros(entry.shape, np.float32)
    leaf = flat[entry.path] if entry.layer is None else flat[entry.path][entry.layer]
    leaf = np.asarray(leaf, np.float32)
    leaf = np.swapaxes(leaf, -1, -2) if entry.transposed else leaf
    return np.ascontiguousarray(leaf.reshape(entry.shape))


def _laid_out(config: TransformerConfig, records: list[Record], contents: list[bytes]) -> bytes:
    """Header, codebooks, records, and every content at a multiple of 64 bytes."""
    levels = held_levels()
    offset = HEADER_FORMAT.size + levels.nbytes + RECORD_FORMAT.size * len(records)
    packed_records, blobs = [], []
    for record, content in zip(records, contents, strict=True):
        padding = -offset % ALIGNMENT
        packed_records.append(record._replace(offset=offset + padding).packed())
        blobs.append(bytes(padding) + content)
        offset += padding + len(content)
    header = header_of(config, len(records), len(levels)).packed()
    return b"".join([header, levels.astype("<f4").tobytes(), *packed_records, *blobs])


def _require(sound: np.bool_, entry: Entry, what: str) -> None:
    if not sound:
        layer = "" if entry.layer is None else f", layer {entry.layer},"
        raise InputError(f"{entry.path}{layer} holds {what}", remedy="build from an earlier checkpoint")
