"""The engram: a memory of token n-grams, read by hash at a few layers.

It depends on the tokens alone, so all of it is computed before the first layer and, when only adapters are
trained, has no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from needle.model.configuration import CONVOLUTION_TAPS, TransformerConfig
from needle.model.norm import rms
from needle.model.visibility import Visibility, shift

_HASH_SEED = 0x9E3779B9
_HASH_PRIME = 0x01000193
Cast = Callable[[jax.Array], jax.Array]


class EngramReading(NamedTuple):
    """What one site offers at every position: key (B, T, d) float32, of unit length, and value (B, T, d)."""

    key: jax.Array
    value: jax.Array


def engram_indices(tokens: jax.Array, config: TransformerConfig) -> jax.Array:
    """Rows of the hash tables for every position: tokens (B, T) int32 -> (B, T, tables) int32.

    Table (order, head) hashes the last `order` tokens, FNV style in uint32; token 0 stands before the start.
    """
    unsigned = tokens.astype(jnp.uint32)
    columns = []
    for table in range(config.engram_tables):
        order = config.engram_orders[table // config.engram_hash_heads]
        mixed = jnp.full(tokens.shape, _HASH_SEED * (table + 1) & 0xFFFFFFFF, jnp.uint32)
        for distance in range(order):
            mixed = (mixed ^ shift(unsigned, distance)) * jnp.uint32(_HASH_PRIME)
        mixed = mixed ^ (mixed >> 15)
        columns.append(mixed % jnp.uint32(config.engram_slots))
    return jnp.stack(columns, axis=-1).astype(jnp.int32)


def read_engram(
    params: Any, indices: jax.Array, visibility: Visibility, config: TransformerConfig, quantise: Cast
) -> EngramReading:
    """Fetch and project the rows of one site.

    indices (B, T, tables); `params` is one `engrams_{s}` subtree, already in the computation's dtype;
    `quantise` is the activation quantiser, or the identity.
    """
    fetched = quantise(_fetch(params["embedding"], indices, visibility, config))
    key = rms(fetched @ params["key_proj"]["kernel"]) / math.sqrt(config.d_model)
    value = _convolve(fetched @ params["value_proj"]["kernel"], params["taps"], visibility, config)
    return EngramReading(key, value)


def add_engram(u: jax.Array, reading: EngramReading, present: jax.Array | float) -> jax.Array:
    """u (B, T, d) float32 plus the gated value; `present` is 1 at a site and 0 elsewhere."""
    gate = jax.nn.sigmoid(jnp.sum(rms(u) * reading.key, axis=-1, keepdims=True))
    return u + present * gate * reading.value


def _fetch(
    tables: jax.Array, indices: jax.Array, visibility: Visibility, config: TransformerConfig
) -> jax.Array:
    """The rows of all tables side by side, (B, T, d); 0 where the n-gram is not wholly visible."""
    batch, length, _ = indices.shape
    rows = []
    for table in range(config.engram_tables):
        order = config.engram_orders[table // config.engram_hash_heads]
        visible = visibility.at_distance(order - 1, batch, length)
        row = jnp.take(tables[table], indices[..., table], axis=0)
        rows.append(jnp.where(visible[..., None], row, 0))
    return jnp.concatenate(rows, axis=-1)


def _convolve(
    value: jax.Array, taps: jax.Array, visibility: Visibility, config: TransformerConfig
) -> jax.Array:
    """The causal dilated convolution over time; a tap counts only where its position is visible."""
    batch, length, _ = value.shape
    dilation = max(config.engram_orders)
    total = jnp.zeros_like(value)
    for tap in range(CONVOLUTION_TAPS):
        distance = tap * dilation
        visible = visibility.at_distance(distance, batch, length)[..., None]
        total = total + jnp.where(visible, taps[tap] * shift(value, distance), 0)
    return total
