"""Root-mean-square normalisation; its statistics are always float32."""

from __future__ import annotations

import jax
import jax.numpy as jnp

EPSILON = 1e-6


def inverse_rms(x: jax.Array) -> jax.Array:
    """1 / sqrt(mean(x²) + 1e-6) over the last axis, kept as an axis of one; float32."""
    return jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True) + EPSILON)


def rms(x: jax.Array) -> jax.Array:
    """x with a root mean square of one over its last axis; float32."""
    return x.astype(jnp.float32) * inverse_rms(x)


def zero_centred_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """ZCRMSNorm: (1 + scale) · rms(x), so that a scale of zero means plain normalisation; float32."""
    return (1.0 + scale.astype(jnp.float32)) * rms(x)
