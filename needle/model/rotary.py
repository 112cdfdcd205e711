"""Rotary position embedding on halves of a head (Su et al., 2021)."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def rotary_table(positions: jax.Array, head_dim: int, theta: float) -> tuple[jax.Array, jax.Array]:
    """(cos, sin) of position times frequency theta^(-2i/head_dim), each (..., T, head_dim / 2) float32.

    positions (T,), the same in every row, or (B, T).
    """
    frequencies = theta ** (-jnp.arange(0, head_dim, 2, dtype=jnp.float32) / head_dim)
    angles = positions.astype(jnp.float32)[..., None] * frequencies
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x: jax.Array, table: tuple[jax.Array, jax.Array]) -> jax.Array:
    """[x1·cos - x2·sin, x2·cos + x1·sin] for x (B, T, heads, head_dim) with halves x1, x2."""
    cos, sin = (part[..., None, :].astype(x.dtype) for part in table)
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
