"""Fresh parameters: seeded, equal on every JAX version, computed without a checkpoint."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from needle.model.configuration import TransformerConfig, require_buildable
from needle.model.parameters import Shape, optional_shapes, parameter_shapes, unflatten

_DEVIATION = 0.02
_CONSTANTS = {
    "scale": 0.0, "attn_gate": 0.0, "d1": 1.0, "d2": 1.0, "d3": 0.02, "mhc_b_pre": 0.0, "mhc_b_post": 0.0,
    "mhc_a_pre": 0.01, "mhc_a_post": 0.01, "mhc_a_res": 0.01,
}  # fmt: skip
_RESIDUAL_PROJECTIONS = ("out_proj", "value_proj")


def init_params(config: TransformerConfig, seed: int) -> dict[str, Any]:
    """The nested dict of float32 parameters of an untrained model, with the multi-token head.

    Each leaf's key is the seed folded with the leaf's path, so adding a part never changes another.
    """
    require_buildable(config)
    with jax.threefry_partitionable(True):
        key = jax.random.PRNGKey(seed)
        return {name: make(key) for name, make in part_initialisers(config).items()}


def part_initialisers(config: TransformerConfig) -> dict[str, Callable[[jax.Array], Any]]:
    """For every top-level name of the parameters, what makes its subtree from a key."""
    shapes = parameter_shapes(config) | optional_shapes(config)["mtp"]
    parts: dict[str, dict[str, Shape]] = {}
    for path, shape in shapes.items():
        parts.setdefault(path.partition("/")[0], {})[path] = shape
    return {name: partial(_part, name, leaves, config) for name, leaves in parts.items()}


def _part(name: str, leaves: dict[str, Shape], config: TransformerConfig, key: jax.Array) -> Any:
    return unflatten({path: _leaf(path, shape, config, key) for path, shape in leaves.items()})[name]


def _leaf(path: str, shape: Shape, config: TransformerConfig, key: jax.Array) -> jax.Array:
    *_, module, name = ("", *path.split("/"))
    if name in _CONSTANTS:
        return jnp.full(shape, _CONSTANTS[name], jnp.float32)
    if name == "mhc_b_res":
        return jnp.broadcast_to(4.0 * jnp.eye(shape[-1]), shape)
    if name == "taps":
        return jnp.zeros(shape).at[0].set(1.0)
    # What writes to the residual starts smaller, so that depth does not enlarge the sum.
    shrink = math.sqrt(2 * config.num_layers) if module in _RESIDUAL_PROJECTIONS else 1.0
    own = jax.random.fold_in(key, np.uint32(zlib.crc32(path.encode())))
    return _DEVIATION / shrink * jax.random.normal(own, shape, jnp.float32)
