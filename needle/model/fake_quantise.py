"""Rounding of weights inside the training step, with the gradient of the unrounded ones.

The levels of `quantize`, as JAX functions: a model trained through them learns for the weights that ship.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from needle.model.bitmap import BitMap, canonical_name
from needle.model.codebooks import GROUP_SIZE, codebook
from needle.model.hadamard import walsh_matrix
from needle.model.parameters import flatten, unflatten

_SMALLEST_NORM = 1e-12


def fake_quantised_params(
    params: Mapping[str, Any], bit_map: BitMap, only: Iterable[str] | None = None
) -> dict[str, Any]:
    """Merged parameters with every quantised leaf rounded to its levels, float32; the others as they were.

    The gradient of a rounded leaf passes to the leaf unchanged (a straight-through estimator). `only` names
    the leaves to round: those that change in training, when the rest was rounded once before it.
    """
    flat = flatten(params)
    chosen = set(flat if only is None else only)
    rounded = {
        path: fake_quantise(leaf, bit_map.bits_of(name), axis=_input_axis(path))
        for path, leaf in flat.items()
        if path in chosen and (name := canonical_name(path))
    }
    return unflatten(flat | rounded)


def fake_quantise(weights: jax.Array, bits: float, axis: int = -1) -> jax.Array:
    """weights, of any axes, rounded in groups of 128 along `axis`; float32, with the gradient of weights."""
    exact = jnp.asarray(weights, jnp.float32)
    rows = jnp.moveaxis(exact, axis, -1)
    rounded = jnp.moveaxis(_rounded(jax.lax.stop_gradient(rows), bits), -1, axis)
    return exact + jax.lax.stop_gradient(rounded - exact)


def _input_axis(path: str) -> int:
    """Groups run along the axis that is summed over: the last of a table, the second-last of a kernel."""
    return -1 if path.endswith("embedding") else -2


def _rounded(rows: jax.Array, bits: float) -> jax.Array:
    width = rows.shape[-1]
    padding = [(0, 0)] * (rows.ndim - 1) + [(0, -width % GROUP_SIZE)]
    groups = jnp.pad(rows, padding).reshape(*rows.shape[:-1], -1, GROUP_SIZE)
    turned = _turn(groups)
    norms = jnp.sqrt(jnp.sum(jnp.square(turned), axis=-1, keepdims=True))
    unit = turned / jnp.maximum(norms, _SMALLEST_NORM)
    kept = norms.astype(jnp.float16).astype(jnp.float32)
    return _turn(_nearest(unit, bits) * kept).reshape(*rows.shape[:-1], -1)[..., :width]


def _nearest(unit: jax.Array, bits: float) -> jax.Array:
    """The nearest level of each number, the lower of two at the same distance.

    A chain of comparisons fuses into what surrounds it; a search or a gather does not.
    """
    levels = np.asarray(codebook(bits).levels, np.float32)
    nearest = jnp.full_like(unit, levels[0])
    for lower, upper in itertools.pairwise(levels):
        nearest = jnp.where(unit > (lower + upper) / 2, upper, nearest)
    return nearest


def _turn(groups: jax.Array) -> jax.Array:
    """The Walsh-Hadamard transform, its own inverse; never in the reduced precision of tensor cores."""
    return jnp.matmul(groups, jnp.asarray(walsh_matrix(GROUP_SIZE)), precision=jax.lax.Precision.HIGHEST)
