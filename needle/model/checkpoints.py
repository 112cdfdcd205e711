"""Base model checkpoints: published `.pkl` files of format 2, and `.safetensors`. No JAX."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from needle.data.base import inspect_base
from needle.data.pickles import load_pickle
from needle.errors import InputError
from needle.model.configuration import TransformerConfig, require_buildable
from needle.model.files import Array, read_safetensors, write_pickle, write_safetensors
from needle.model.parameters import flatten, optional_shapes, parameter_shapes, unflatten

FORMAT_VERSION = 2
PICKLE_SUFFIXES = (".pkl", ".pickle")


class Checkpoint(NamedTuple):
    """A checkpoint as saved: flat parameters by path, and what was recorded beside them."""

    flat: dict[str, Array]
    config: TransformerConfig
    step: int
    run: dict[str, Any]


def load_checkpoint(path: Path | str) -> tuple[dict[str, Any], TransformerConfig]:
    """(nested dict of numpy arrays as stored, configuration) of a base model.

    Raises InputError, in words for a person, when the file is missing, incomplete, something else or an
    adapter, when its parameters do not fit its configuration, or when a number in it is not finite.
    """
    checkpoint = read_checkpoint(path)
    return unflatten(checkpoint.flat), checkpoint.config


def read_checkpoint(path: Path | str) -> Checkpoint:
    """All of a checkpoint; see `load_checkpoint` for what is checked."""
    facts = inspect_base(path)
    read = _read_pickle if facts.format == "pickle" else _read_safetensors
    try:
        checkpoint = read(path)
        require_buildable(checkpoint.config)
        _require_geometry(checkpoint)
        _require_finite(checkpoint.flat)
    except InputError as error:
        raise InputError(error.message, where=str(path), remedy=error.remedy) from None
    return checkpoint


def save_checkpoint(
    path: Path | str,
    params: Mapping[str, Any],
    config: TransformerConfig,
    *,
    step: int = 0,
    run: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint, as a whole or not at all: `.pkl` by its suffix, safetensors otherwise.

    Raises RunError when the file cannot be written.
    """
    recorded = dict(run or {})
    if Path(path).suffix in PICKLE_SUFFIXES:
        content = {"format_version": FORMAT_VERSION, "params": params, "config": config.to_dict()}
        write_pickle(path, {**content, "step": step, "run": recorded})
        return
    metadata = {
        "format_version": str(FORMAT_VERSION),
        "config": json.dumps(config.to_dict()),
        "step": str(step),
        "run": json.dumps(recorded),
    }
    write_safetensors(path, flatten(params), metadata)


def _read_safetensors(path: Path | str) -> Checkpoint:
    flat, metadata = read_safetensors(path)
    config = TransformerConfig.from_dict(_json(metadata, "config", {}))
    return Checkpoint(flat, config, int(_json(metadata, "step", 0)), dict(_json(metadata, "run", {})))


def _read_pickle(path: Path | str) -> Checkpoint:
    saved: Any = load_pickle(path)
    flat = {name: _array(name, leaf) for name, leaf in flatten(saved["params"]).items()}
    config = TransformerConfig.from_dict(saved["config"])
    run = saved.get("run")
    return Checkpoint(flat, config, int(saved.get("step") or 0), run if isinstance(run, dict) else {})


def _array(name: str, leaf: object) -> Array:
    """Numbers of no axes come out of a pickle as Python numbers."""
    if isinstance(leaf, np.ndarray):
        return leaf
    if isinstance(leaf, (int, float)):
        return np.asarray(leaf, np.float32)
    raise InputError(f"its parameter {name} is a {type(leaf).__name__}, not an array")


def _json(metadata: Mapping[str, str], name: str, missing: Any) -> Any:
    try:
        return json.loads(metadata[name])
    except KeyError:
        return missing
    except ValueError:
        raise InputError(f"its {name} is not JSON: {metadata[name]:.40}") from None


def _require_geometry(checkpoint: Checkpoint) -> None:
    """Every needed parameter, each of the shape its configuration says; optional groups whole or absent."""
    expected = parameter_shapes(checkpoint.config)
    for shapes in optional_shapes(checkpoint.config).values():
        if any(name in checkpoint.flat for name in shapes):
            expected |= shapes
    for name, shape in expected.items():
        if name not in checkpoint.flat:
            raise InputError(
                f"has no parameter {name}", remedy="its configuration does not describe this file"
            )
        found = checkpoint.flat[name].shape
        if found != shape:
            raise InputError(
                f"its parameter {name} has shape {found}, but its configuration says {shape}",
                remedy="its configuration does not describe this file",
            )


def _require_finite(flat: Mapping[str, Array]) -> None:
    for name, leaf in flat.items():
        if leaf.dtype.kind in "iub":
            raise InputError(f"its parameter {name} holds {leaf.dtype}, not floating-point numbers")
        finite = np.isfinite(leaf)
        if not finite.all():
            bad = int(finite.size - np.count_nonzero(finite))
            raise InputError(
                f"its parameter {name} holds {bad:,} numbers that are not finite",
                remedy="training from it would only give NaN; use an earlier checkpoint",
            )


__all__ = [
    "FORMAT_VERSION",
    "Checkpoint",
    "load_checkpoint",
    "read_checkpoint",
    "read_safetensors",
    "save_checkpoint",
    "write_safetensors",
]
