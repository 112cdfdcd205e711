"""The header of a safetensors file: names, formats and shapes of its tensors, without reading them."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from needle.data.files import open_input, refuse_foreign, unreadable
from needle.data.foreign import HEAD_BYTES
from needle.data.jsontext import Json, JsonError, parse_json
from needle.errors import InputError

ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip
_LARGEST_HEADER_BYTES = 100 * 2**20
_AGAIN = "copy or download it again, and compare its size with the original"


class TensorInfo(NamedTuple):
    """One tensor: format such as `F16`, shape, and where its bytes begin and end within the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """What a safetensors file holds. `data_start` is where its data begins, in bytes."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    data_start: int
    size_bytes: int


def read_header(path: Path | str) -> Header:
    """The header of a whole and consistent file. Raises InputError for any other."""
    with open_input(path, "a .safetensors file") as file:
        try:
            refuse_foreign(path, file.read(HEAD_BYTES))
            size_bytes = file.seek(0, 2)
            text = _header_text(file, size_bytes)
        except OSError as error:
            raise unreadable(path, error) from None
    if text is None:
        raise InputError(
            "is not a safetensors file, or its beginning is damaged", where=str(path), remedy=_AGAIN
        )
    try:
        header = _parsed(text, size_bytes)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"has a damaged header: {error}", where=str(path), remedy=_AGAIN) from None
    _require_whole(header, path)
    return header


def _header_text(file: BinaryIO, size_bytes: int) -> str | None:
    """The header's JSON; None when there cannot be one. A cut header is text that is cut."""
    file.seek(0)
    prefix = file.read(8)
    if len(prefix) < 8:
        return None
    (length,) = struct.unpack("<Q", prefix)
    if not 2 <= length <= _LARGEST_HEADER_BYTES:
        return None
    content = file.read(min(length, size_bytes))
    return content.decode("utf-8", errors="replace") if content.startswith(b"{") else None


def _parsed(text: str, size_bytes: int) -> Header:
    try:
        value = parse_json(text)
    except JsonError as error:
        raise ValueError(f"it is cut short or not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    metadata = value.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise ValueError("its metadata is not an object")
    tensors = {name: _tensor(name, described) for name, described in value.items()}
    return Header(
        tensors, {name: str(text) for name, text in metadata.items()}, 8 + len(text.encode()), size_bytes
    )


def _tensor(name: str, described: Json) -> TensorInfo:
    if not isinstance(described, dict):
        raise ValueError(f"tensor {name!r} is not described")
    dtype, shape, offsets = described.get("dtype"), described.get("shape"), described.get("data_offsets")
    sizes, (begin, end) = _counts(shape, name), _counts(offsets, name)
    if dtype not in ITEM_BYTES or not isinstance(dtype, str):
        raise ValueError(f"tensor {name!r} has the unknown format {dtype!r}")
    if math.prod(sizes) * ITEM_BYTES[dtype] != end - begin:
        raise ValueError(f"tensor {name!r} does not fill its shape")
    return TensorInfo(dtype, tuple(sizes), begin, end)


def _counts(value: Json, name: str) -> list[int]:
    counts = [one for one in value if isinstance(one, int) and one >= 0] if isinstance(value, list) else []
    if not isinstance(value, list) or len(counts) != len(value):
        raise ValueError(f"tensor {name!r} is badly described")
    return counts


def _require_whole(header: Header, path: Path | str) -> None:
    """The tensors must lie one after the other and end where the file ends."""
    end = 0
    for tensor in sorted(header.tensors.values(), key=lambda tensor: (tensor.begin, tensor.end)):
        if tensor.begin != end:
            raise InputError("has tensors that overlap or leave gaps", where=str(path), remedy=_AGAIN)
        end = tensor.end
    wanted = header.data_start + end
    if header.size_bytes < wanted:
        raise InputError(
            f"is cut short: {header.size_bytes:,} of {wanted:,} bytes", where=str(path), remedy=_AGAIN
        )
    if header.size_bytes > wanted:
        raise InputError(
            f"has {header.size_bytes - wanted:,} bytes after its end", where=str(path), remedy=_AGAIN
        )
