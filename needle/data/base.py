"""What a base model file holds, told without loading its weights where its format allows that."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from needle.data.files import open_input
from needle.data.jsontext import JsonError, parse_json
from needle.data.pickles import Plain, load_pickle
from needle.data.safetensors_header import read_header
from needle.errors import InputError

Format = Literal["safetensors", "pickle"]

_WANTED = "a base model, .safetensors or .pkl"
_DEFAULT_HEADS = 8
_FORMAT_VERSION = 2
_EMBEDDING = "embedding/embedding"
_ATTENTION = "stack/layers/block/self_attn"


@dataclass(frozen=True)
class BaseFacts:
    """The geometry and size of a base model; `weight_bits` is the bit map it says it ships with, if any."""

    path: str
    parameter_count: int
    size_bytes: int
    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    format: Format
    weight_bits: str = ""


def inspect_base(path: Path | str) -> BaseFacts:
    """The facts of a base model file.

    Raises InputError, in words for a person, when it is missing, incomplete, something else, or an adapter.
    """
    with open_input(path, _WANTED) as file:
        status = os.fstat(file.fileno())
    return _inspected(str(path), status.st_mtime_ns, status.st_size)


class _Contents(NamedTuple):
    """What either format says: the shapes of its parameters by path, and its configuration."""

    shapes: dict[str, tuple[int, ...]]
    config: Mapping[str, object]
    format: Format


@lru_cache(maxsize=8)
def _inspected(path: str, modified_ns: int, size_bytes: int) -> BaseFacts:
    """Remembered while the file stays as it is: a form asks again at every key."""
    with open_input(path, _WANTED) as file:
        is_pickle = file.read(1) == b"\x80" or Path(path).suffix in (".pkl", ".pickle")
    contents = _from_pickle(path) if is_pickle else _from_safetensors(path)
    return _facts(contents, path, size_bytes)


def _from_safetensors(path: str) -> _Contents:
    header = read_header(path)
    if any(name.startswith("lora/") for name in header.tensors):
        raise _is_an_adapter(path, header.metadata.get("base", ""))
    try:
        config = parse_json(header.metadata.get("config", "null"))
    except JsonError as error:
        raise _not_a_base(path, f"its configuration is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise _not_a_base(path, "it has no 'config' in its metadata")
    shapes = {name: tensor.shape for name, tensor in header.tensors.items()}
    return _Contents(shapes, config, "safetensors")


def _from_pickle(path: str) -> _Contents:
    saved = load_pickle(path)
    if not isinstance(saved, dict):
        raise _not_a_base(path, "it does not hold a checkpoint")
    if "lora" in saved:
        raise _is_an_adapter(path, saved.get("base"))
    if saved.get("format_version") != _FORMAT_VERSION:
        raise _not_a_base(
            path, f"its format_version is {saved.get('format_version')!r:.40}, not {_FORMAT_VERSION}"
        )
    params, config = saved.get("params"), saved.get("config")
    if not isinstance(params, dict) or not isinstance(config, dict):
        raise _not_a_base(path, "it has no 'params' or no 'config'")
    return _Contents(
        dict(_shapes(params, "")), {str(name): value for name, value in config.items()}, "pickle"
    )


def _shapes(params: dict[Plain, Plain], prefix: str) -> list[tuple[str, tuple[int, ...]]]:
    found: list[tuple[str, tuple[int, ...]]] = []
    for name, value in params.items():
        path = f"{prefix}/{name!s}" if prefix else f"{name!s}"
        if isinstance(value, dict):
            found.extend(_shapes(value, path))
        else:
            found.append((path, tuple(getattr(value, "shape", ()))))
    return found


def _facts(contents: _Contents, path: str, size_bytes: int) -> BaseFacts:
    vocab_size, d_model = _shape(contents, _EMBEDDING, 2, path)
    num_layers, _, attention_dim = _shape(contents, f"{_ATTENTION}/q_proj/kernel", 3, path)
    *_, kv_dim = _shape(contents, f"{_ATTENTION}/k_proj/kernel", 3, path)
    found = {"vocab_size": vocab_size, "d_model": d_model, "num_layers": num_layers}
    for name, size in found.items():
        if contents.config.get(name, size) != size:
            raise _not_a_base(
                path, f"its {name} is {size} but its configuration says {contents.config[name]!r:.40}"
            )
    num_heads = contents.config.get("num_heads", _DEFAULT_HEADS)
    if not isinstance(num_heads, int) or num_heads < 1 or attention_dim % num_heads:
        raise _not_a_base(path, f"{num_heads!r:.40} heads do not divide a width of {attention_dim}")
    head_dim = attention_dim // num_heads
    return BaseFacts(
        path=path,
        parameter_count=sum(math.prod(shape) for shape in contents.shapes.values()),
        size_bytes=size_bytes,
        **found,
        num_heads=num_heads,
        num_kv_heads=kv_dim // head_dim,
        head_dim=head_dim,
        format=contents.format,
        weight_bits=str(contents.config.get("weight_bits") or ""),
    )


def _shape(contents: _Contents, name: str, axes: int, path: str) -> tuple[int, ...]:
    shape = contents.shapes.get(name)
    if shape is None or len(shape) != axes or 0 in shape:
        raise _not_a_base(path, f"it has no {name} of {axes} axes")
    return shape


def _not_a_base(path: str, reason: str) -> InputError:
    return InputError(f"is not a Needle base model: {reason}", where=path, remedy=f"give {_WANTED}")


def _is_an_adapter(path: str, base: object) -> InputError:
    made_for = f" (made for {base!r:.80})" if base else ""
    return InputError(
        f"is an adapter{made_for}, not a base model",
        where=path,
        remedy="give the base model it was trained on",
    )
