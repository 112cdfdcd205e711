"""Who may see whom: causal, within a segment of a packed row, or by an explicit mask.

Attention needs the whole relation; the engram needs it only at fixed distances back in time, so each form
answers both without building more than it must.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Visibility:
    """Position t may see position s when s <= t and the segments or the mask allow it.

    `segments` (B, T) int: equal and non-zero numbers belong together, 0 is padding and sees nothing.
    `mask` (B, T, T) bool: true where t (second-last axis) may see s. Neither means causal alone.
    """

    segments: jax.Array | None = None
    mask: jax.Array | None = None

    @property
    def causal_only(self) -> bool:
        return self.segments is None and self.mask is None

    def at_distance(self, distance: int, batch: int, length: int) -> jax.Array:
        """(B, T) bool: whether t may see t - distance; false before the start."""
        inside = jnp.arange(length) >= distance
        if self.segments is not None:
            same = (self.segments == shift(self.segments, distance)) & (self.segments > 0)
            inside = inside & same
        if self.mask is not None:
            earlier = jnp.maximum(jnp.arange(length) - distance, 0)
            inside = inside & self.mask[:, jnp.arange(length), earlier]
        return jnp.broadcast_to(inside, (batch, length))

    def matrix(self, length: int) -> jax.Array | None:
        """(B, 1, T, T) bool without the causal part, or None; every row sees itself.

        A row that sees nothing would be a softmax over nothing: NaN, which spreads through gradients.
        """
        if self.causal_only:
            return None
        itself = jnp.eye(length, dtype=bool)
        allowed: jax.Array = jnp.ones((1, length, length), bool)
        if self.segments is not None:
            allowed = allowed & (self.segments[:, :, None] == self.segments[:, None, :])
            allowed = allowed & (self.segments > 0)[:, :, None]
        if self.mask is not None:
            allowed = allowed & self.mask
        return (allowed | itself)[:, None]


def make_visibility(segments: jax.Array | None, mask: jax.Array | None) -> Visibility:
    """Visibility from what a caller has; a mask may be (T, T), (B, T, T) or (B, 1, T, T), nonzero = sees."""
    if mask is not None:
        mask = jnp.asarray(mask).astype(bool)
        mask = mask[:, 0] if mask.ndim == 4 else mask[None] if mask.ndim == 2 else mask
    return Visibility(segments if segments is None else jnp.asarray(segments), mask)


def shift(x: jax.Array, distance: int) -> jax.Array:
    """x (B, T, ...) moved `distance` positions later in time, zeros before the start."""
    if distance == 0:
        return x
    padding = [(0, 0), (distance, 0)] + [(0, 0)] * (x.ndim - 2)
    return jnp.pad(x, padding)[:, : x.shape[1]]
