"""Adapter files: what fine-tuning leaves behind, `.safetensors` or `.pkl`. No JAX."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from needle.data.files import open_input
from needle.data.pickles import load_pickle
from needle.errors import InputError
from needle.model.configuration import TransformerConfig
from needle.model.files import read_safetensors, write_pickle, write_safetensors
from needle.model.parameters import flatten, parameter_shapes

Adapter = dict[str, dict[str, Any]]
"""Path of a kernel -> its matrices "A" (L, in, rank) and "B" (L, rank, out), float32."""

_PREFIX = "lora"
_WANTED = "an adapter, .safetensors or .pkl"


@dataclass(frozen=True)
class AdapterFile:
    """A trained adapter. The merged kernel is W + scale · A·B; `base` names the file it was trained on.

    `qat_bits` and `qat_bits_map` say which rounding it was trained for, None for none; `step` and `val_loss`
    how long it was trained and how well it did then, None where it is not known (a `.pkl` has no place for
    them).
    """

    lora: Adapter
    scale: float
    base: str
    rank: int
    seed: int
    qat_bits: float | None = None
    qat_bits_map: str | None = None
    step: int | None = None
    val_loss: float | None = None


def save_adapter(path: Path | str, adapter: AdapterFile) -> None:
    """Write an adapter, as a whole or not at all: `.pkl` by its suffix, safetensors otherwise.

    Raises RunError when the file cannot be written.
    """
    recorded = {name: getattr(adapter, name) for name in ("scale", "base", "rank", "seed")}
    rounding = {"qat_bits": adapter.qat_bits, "qat_bits_map": adapter.qat_bits_map}
    if Path(path).suffix == ".pkl":
        write_pickle(path, {"lora": adapter.lora, **recorded, **rounding})
        return
    optional = {**rounding, "step": adapter.step, "val_loss": adapter.val_loss}
    recorded |= {name: value for name, value in optional.items() if value is not None}
    metadata = {name: json.dumps(value) for name, value in recorded.items()}
    write_safetensors(path, flatten({_PREFIX: adapter.lora}), metadata)


def load_adapter(path: Path | str) -> AdapterFile:
    """An adapter, its matrices numpy float32. Raises InputError for anything else, saying what it is."""
    with open_input(path, _WANTED) as file:
        is_pickle = file.read(1) == b"\x80"
    lora, recorded = (_from_pickle if is_pickle else _from_safetensors)(path)
    if not lora:
        raise _not_an_adapter(path, "it holds no adapter matrices")
    lora = {name: _checked(path, name, matrices) for name, matrices in sorted(lora.items())}
    rank = next(iter(lora.values()))["A"].shape[-1]
    try:
        return AdapterFile(
            lora=lora,
            scale=float(recorded["scale"]),
            base=str(recorded.get("base") or ""),
            rank=int(recorded.get("rank") or rank),
            seed=int(recorded.get("seed") or 0),
            qat_bits=recorded.get("qat_bits"),
            qat_bits_map=recorded.get("qat_bits_map"),
            step=recorded.get("step"),
            val_loss=recorded.get("val_loss"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _not_an_adapter(path, f"what it records is damaged: {error}") from None


def require_fits(adapter: AdapterFile, config: TransformerConfig) -> None:
    """Raise InputError when the adapter was made for a model of another geometry."""
    shapes = parameter_shapes(config)
    for path, matrices in adapter.lora.items():
        made_for = (*matrices["A"].shape[:-1], matrices["B"].shape[-1])
        if shapes.get(path) != made_for:
            raise InputError(
                f"this adapter was made for another model: its {path} is {made_for}, "
                f"the model's is {shapes.get(path, 'absent')}",
                remedy=f"use the base it was trained on{f': {adapter.base}' if adapter.base else ''}",
            )


def _from_safetensors(path: Path | str) -> tuple[Adapter, dict[str, Any]]:
    tensors, metadata = read_safetensors(path)
    if "embedding/embedding" in tensors:
        raise _not_an_adapter(path, "it is a base model")
    lora: Adapter = {}
    for name, tensor in tensors.items():
        prefix, _, rest = name.partition("/")
        kernel, _, matrix = rest.rpartition("/")
        if prefix != _PREFIX or not kernel:
            raise _not_an_adapter(path, f"it holds {name!r:.80}")
        lora.setdefault(kernel, {})[matrix] = tensor
    known = ("scale", "base", "rank", "seed", "qat_bits", "qat_bits_map", "step", "val_loss")
    try:
        return lora, {name: json.loads(metadata[name]) for name in known if name in metadata}
    except ValueError:
        raise _not_an_adapter(path, "what it records is not JSON") from None


def _from_pickle(path: Path | str) -> tuple[Adapter, dict[str, Any]]:
    saved: Any = load_pickle(path)
    if not isinstance(saved, dict):
        raise _not_an_adapter(path, "it holds something else")
    if "params" in saved:
        raise _not_an_adapter(path, "it is a base model")
    lora = saved.get("lora")
    if not isinstance(lora, dict) or not all(isinstance(matrices, dict) for matrices in lora.values()):
        raise _not_an_adapter(path, "it has no 'lora'")
    return lora, saved


def _checked(path: Path | str, name: str, matrices: Mapping[str, Any]) -> dict[str, Any]:
    """A and B of one kernel as float32, of shapes that can be multiplied, all finite."""
    if set(matrices) != {"A", "B"} or not all(isinstance(leaf, np.ndarray) for leaf in matrices.values()):
        raise _not_an_adapter(path, f"{name} has {', '.join(sorted(map(str, matrices)))}, not A and B")
    a, b = (np.asarray(matrices[matrix], np.float32) for matrix in ("A", "B"))
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise _not_an_adapter(path, f"A {a.shape} and B {b.shape} of {name} do not fit each other")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError(f"{name} holds numbers that are not finite", where=str(path))
    return {"A": a, "B": b}


def _not_an_adapter(path: Path | str, reason: str) -> InputError:
    return InputError(f"is not an adapter: {reason}", where=str(path), remedy=f"give {_WANTED}")
