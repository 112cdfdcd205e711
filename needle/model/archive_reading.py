"""Reading `.cact` archives back: the weights that ship, as parameters to compute with. No JAX."""

from __future__ import annotations

import dataclasses
import math
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from needle.data.files import open_input, refuse_foreign, unreadable
from needle.errors import InputError
from needle.model.archive import held_levels
from needle.model.archive_layout import (
    FLOAT16,
    FLOAT32,
    HEADER_FORMAT,
    HEADS,
    QUANTISED,
    RAW,
    RECORD_FORMAT,
    TAG,
    Entry,
    Header,
    Record,
    config_of,
    entries,
    header_of,
    tensor_count,
)
from needle.model.bitmap import BitMap
from needle.model.codebooks import GROUP_SIZE, codebook_of_code
from needle.model.configuration import TransformerConfig, require_buildable
from needle.model.parameters import optional_shapes, parameter_shapes, unflatten
from needle.model.quantize import Floats, Groups, dequantise, group_count, unpack
from needle.model.raw_tokenizer import Piece, read_raw_tokenizer

_WANTED = "a .cact archive, made by: needle build"
_PLAIN = {FLOAT16: "<f2", FLOAT32: "<f4"}
_AGAIN = "build it again, or copy it again and compare its size with the original"


@dataclass(frozen=True)
class Archive:
    """What an archive holds: nested float32 parameters, their geometry, the tokenizer's pieces.

    `config.weight_bits` is a bit map of the widths found; `config.kv_window` the engine's.
    """

    params: dict[str, Any]
    config: TransformerConfig
    pieces: tuple[Piece, ...]
    size_bytes: int


def read_archive(path: Path | str) -> Archive:
    """Read a whole archive. Raises InputError, in words for a person, for any other file."""
    with open_input(path, _WANTED) as file:
        try:
            content = file.read()
        except OSError as error:
            raise unreadable(path, error) from None
    if content[:4] != struct.pack("<I", TAG):
        refuse_foreign(path, content)
        raise InputError(
            f"is not a .cact archive{_taken_for(content)}", where=str(path), remedy=f"give {_WANTED}"
        )
    try:
        return _archive(content)
    except (ValueError, struct.error) as error:
        raise InputError(f"is damaged: {error}", where=str(path), remedy=_AGAIN) from None
    except InputError as error:
        raise InputError(f"is damaged: {error.message}", where=str(path), remedy=_AGAIN) from None


class _Parts(NamedTuple):
    """An archive's bytes with what describes them, checked against each other."""

    content: bytes
    header: Header
    records: list[Record]
    heads: list[str]


def _taken_for(content: bytes) -> str:
    if content[:1] == b"\x80":
        return ", but a pickle: a checkpoint or an adapter"
    return ", but a safetensors file" if content[8:10] == b'{"' else ""


def _archive(content: bytes) -> Archive:
    parts = _parts(content)
    pieces = read_raw_tokenizer(_content_of(parts, parts.records[-1], RAW))
    if len(pieces) != parts.header.vocab_size:
        raise ValueError(f"its tokenizer has {len(pieces)} pieces for {parts.header.vocab_size} embeddings")
    config = _config(parts)
    listed = entries(config, parts.heads)
    flat = _parameters(parts, listed, config)
    weight_bits = str(_bit_map(listed, parts.records))
    config = dataclasses.replace(config, weight_bits=weight_bits)
    return Archive(unflatten(flat), config, tuple(pieces), len(content))


def _parts(content: bytes) -> _Parts:
    """Raises ValueError when the archive's beginning does not describe these bytes."""
    if len(content) < HEADER_FORMAT.size:
        raise ValueError(f"it is cut short: {len(content)} bytes")
    header = Header.unpacked(content)
    start = HEADER_FORMAT.size + 4 * header.codebook_length
    if start + RECORD_FORMAT.size * header.tensor_count > len(content):
        raise ValueError(
            f"it is cut short: {len(content):,} bytes do not hold its {header.tensor_count} records"
        )
    records = [
        Record.unpacked(content, start + RECORD_FORMAT.size * number) for number in range(header.tensor_count)
    ]
    end = max((record.offset + record.size_bytes for record in records), default=0)
    carried = np.frombuffer(content, "<f4", header.codebook_length, HEADER_FORMAT.size)
    if not np.array_equal(carried, held_levels()):
        raise ValueError("its codebooks are not those of this format")
    if end > len(content):
        raise ValueError(f"it is cut short: {len(content):,} of {end:,} bytes")
    return _Parts(content, header, records, _heads(content, header, records))


def _heads(content: bytes, header: Header, records: list[Record]) -> list[str]:
    """The heads an archive has, by its manifest; checks the number of tensors on the way."""
    without = tensor_count(header.num_layers, header.site_count, 0)
    if header.tensor_count == without:
        return []
    if header.tensor_count > without:
        record = records[without - 1]
        codes = np.frombuffer(content, "<f2", record.size_bytes // 2, record.offset).tolist()
        names = {code: head for head, code in HEADS.items()}
        known = [names[code] for code in codes if code in names]
        if len(known) == len(codes) and header.tensor_count == tensor_count(
            header.num_layers, header.site_count, len(known)
        ):
            return known
    raise ValueError(f"its {header.tensor_count} tensors are not those of its {header.num_layers} layers")


def _config(parts: _Parts) -> TransformerConfig:
    """Raises ValueError or InputError for a geometry that no model has."""
    header = parts.header
    dim = TransformerConfig.contrastive_dim
    if "contrastive_head" in parts.heads:
        first = tensor_count(header.num_layers, header.site_count, 0)
        dim = parts.records[first + 3 * parts.heads.index("contrastive_head") + 1].shape[0]
    config = config_of(header, contrastive_dim=dim)
    require_buildable(config)
    expected = header_of(config, header.tensor_count, header.codebook_length)
    for name, found, wanted in zip(Header._fields, header, expected, strict=True):
        if found != wanted:
            raise ValueError(f"its {name} is {found}, but its other numbers give {wanted}")
    return config


def _parameters(parts: _Parts, listed: list[Entry], config: TransformerConfig) -> dict[str, Floats]:
    """Flat float32 parameters, layers stacked again."""
    shapes = parameter_shapes(config)
    for group in optional_shapes(config).values():
        shapes |= group
    arrays: dict[str, list[Floats]] = {}
    for entry, record in zip(listed, parts.records, strict=False):
        arrays.setdefault(entry.path, []).append(_array(parts, entry, record))
    entry_of = {entry.path: entry for entry in listed}
    return {path: _leaf(arrays[path], shapes[path], entry_of[path]) for path in arrays if path in shapes}


def _array(parts: _Parts, entry: Entry, record: Record) -> Floats:
    """The numbers of one record, float32, in the order of parameters. Raises ValueError when they are not."""
    what = entry.path if entry.layer is None else f"{entry.path} of layer {entry.layer}"
    if record.shape != entry.shape:
        raise ValueError(f"{what} has shape {record.shape}, its geometry gives {entry.shape}")
    if record.dtype == QUANTISED and entry.name:
        array = _dequantised(parts, record, what)
    elif record.dtype in _PLAIN:
        stored = np.dtype(_PLAIN[record.dtype])
        _require_size(record, math.prod(entry.shape) * stored.itemsize, what)
        array = np.frombuffer(_content_of(parts, record, record.dtype), stored).astype(np.float32)
    else:
        raise ValueError(f"{what} has the unknown format {record.dtype}")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} holds numbers that are not finite")
    return array.reshape(entry.shape)


def _dequantised(parts: _Parts, record: Record, what: str) -> Floats:
    book = codebook_of_code(record.bits)
    if book is None or record.group != GROUP_SIZE:
        raise ValueError(f"{what} has {record.bits} bits in groups of {record.group}")
    rows, width = record.shape
    groups = rows * group_count(width)
    index_bytes = groups * GROUP_SIZE * book.index_bits // 8
    _require_size(record, index_bytes + 2 * groups, what)
    content = _content_of(parts, record, QUANTISED)
    norms = np.frombuffer(content, "<f2", offset=index_bytes).astype(np.float16).reshape(rows, -1)
    return dequantise(
        Groups(unpack(content[:index_bytes], book.bits).reshape(rows, -1), norms), book.bits, width
    )


def _leaf(arrays: list[Floats], shape: tuple[int, ...], entry: Entry) -> Floats:
    """One leaf of parameters from its entry, or from one of each layer."""
    stored = np.stack(arrays) if entry.layer is not None else arrays[0]
    if not entry.transposed:
        return stored.reshape(shape)
    *leading, inputs, outputs = shape
    return np.ascontiguousarray(np.swapaxes(stored.reshape(*leading, outputs, inputs), -1, -2))


def _content_of(parts: _Parts, record: Record, dtype: int) -> bytes:
    if record.dtype != dtype:
        raise ValueError(f"a tensor has format {record.dtype} where {dtype} is wanted")
    return parts.content[record.offset : record.offset + record.size_bytes]


def _require_size(record: Record, size_bytes: int, what: str) -> None:
    if record.size_bytes != size_bytes:
        raise ValueError(f"{what} takes {record.size_bytes:,} bytes, its shape needs {size_bytes:,}")


def _bit_map(listed: list[Entry], records: list[Record]) -> BitMap:
    """The widths found: the most common as default, the others by name."""
    widths: dict[str, float] = {}
    for entry, record in zip(listed, records, strict=False):
        book = codebook_of_code(record.bits)
        if entry.name and book:
            widths[entry.name] = book.bits
    if not widths:
        return BitMap()
    (default, _), *_ = Counter(widths.values()).most_common(1)
    return BitMap(default, tuple((name, bits) for name, bits in widths.items() if bits != default))
