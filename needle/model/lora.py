"""LoRA adapters: which kernels they change, how they start, and how they are merged (Hu et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from needle.config import LORA_TARGETS
from needle.errors import InputError
from needle.model.adapters import Adapter, AdapterFile, load_adapter, require_fits, save_adapter
from needle.model.parameters import STACK_ATTENTION, flatten, unflatten

_DEAD_BELOW = 1e-6


def lora_targets(params: Mapping[str, Any], names: Sequence[str] = LORA_TARGETS) -> list[str]:
    """Paths of the stacked attention kernels of these names that an adapter trains, in path order.

    A kernel with no weight above 1e-6 is left out: nothing flows through it, so nothing could be learned.
    """
    flat = flatten(params)
    paths = [f"{STACK_ATTENTION}/{name}_proj/kernel" for name in sorted(names)]
    return [path for path in paths if path in flat and np.max(np.abs(np.asarray(flat[path]))) > _DEAD_BELOW]


def init_lora(
    params: Mapping[str, Any], rank: int, seed: int, names: Sequence[str] = LORA_TARGETS
) -> Adapter:
    """A fresh adapter: A normal / rank, B zero, so that it changes nothing yet; equal on every JAX version.

    Raises InputError when the model has no kernel of these names to adapt.
    """
    targets = lora_targets(params, names)
    if not targets:
        raise InputError(
            f"this base model has nothing to adapt: its attention kernels {', '.join(sorted(names))} "
            "hold only zeros",
            remedy="choose other --lora-targets",
            field="lora_targets",
        )
    flat = flatten(params)
    adapter: Adapter = {}
    with jax.threefry_partitionable(True):
        key = jax.random.PRNGKey(seed)
        for path in targets:
            key, own = jax.random.split(key)
            layers, inputs, outputs = flat[path].shape
            adapter[path] = {
                "A": jax.random.normal(own, (layers, inputs, rank), jnp.float32) / rank,
                "B": jnp.zeros((layers, rank, outputs), jnp.float32),
            }
    return adapter


def changes_nothing(adapter: Adapter) -> bool:
    """Whether merging it leaves every kernel as it was."""
    return not any(np.any(np.asarray(matrices["B"])) for matrices in adapter.values())


def merge(params: Mapping[str, Any], adapter: Adapter, scale: float) -> dict[str, Any]:
    """Parameters with W + scale · A·B, in float32, for every adapted kernel W; the others as they were."""
    merged = dict(flatten(params))
    for path, matrices in adapter.items():
        change = jnp.matmul(matrices["A"], matrices["B"], preferred_element_type=jnp.float32)
        merged[path] = jnp.asarray(merged[path], jnp.float32) + scale * change
    return unflatten(merged)


def collection(adapter: Adapter, scale: float) -> dict[str, Any]:
    """The "lora" collection of `SimpleAttentionNetwork.apply`: the same result as `merge`, without merging.

    `apply({"params": params, "lora": collection(adapter, scale)}, tokens)` never forms the gradient of a
    whole kernel, which saves a quarter of a training step's products.
    """
    beside = {}
    for path, matrices in adapter.items():
        module = path.removesuffix("/kernel")
        beside[f"{module}/A"] = matrices["A"] * scale
        beside[f"{module}/B"] = matrices["B"]
    return unflatten(beside)


__all__ = [
    "Adapter",
    "AdapterFile",
    "changes_nothing",
    "collection",
    "init_lora",
    "load_adapter",
    "lora_targets",
    "merge",
    "require_fits",
    "save_adapter",
]
