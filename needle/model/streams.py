"""Residual streams with learned mixing (manifold-constrained hyper-connections), in float32.

A model keeps n streams X (B, T, n, d). A layer reads one mixture of them, and writes its result back while a
doubly stochastic matrix R mixes the streams among themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from needle.model.norm import inverse_rms

SINKHORN_ITERATIONS = 20


class Mixing(NamedTuple):
    """How one layer reads, writes and mixes: pre (n, B, T), post (n, B, T), residual (n, n, B, T).

    Streams come first so that the innermost loops run over positions.
    """

    pre: jax.Array
    post: jax.Array
    residual: jax.Array


def mixing(streams: jax.Array, params: Any, layer: jax.Array | int) -> Mixing:
    """The weights of layer number `layer` for streams (B, T, n, d).

    `params` holds phi_pre, phi_post (n·d, n), phi_res (n·d, n·n), their b_* and scalar a_*.
    """
    batch, length, lanes, width = streams.shape
    flat = streams.reshape(batch, length, lanes * width)
    phi = jnp.concatenate([params["phi_pre"], params["phi_post"], params["phi_res"]], axis=-1)
    features = jnp.einsum("btk,kc->cbt", flat, phi) * inverse_rms(flat)[..., 0]
    of_pre, of_post, of_residual = jnp.split(features, [lanes, 2 * lanes])
    own = jax.nn.one_hot(layer % lanes, lanes, dtype=jnp.float32)
    pre = params["a_pre"] * of_pre + _per_stream(params["b_pre"] + 8.0 * own - 4.0)
    post = params["a_post"] * of_post + _per_stream(params["b_post"] - 4.0 * (1.0 - own))
    logits = params["a_res"] * of_residual.reshape(lanes, lanes, batch, length)
    logits = logits + _per_stream(params["b_res"])
    return Mixing(jax.nn.sigmoid(pre), 2.0 * jax.nn.sigmoid(post), sinkhorn(logits))


def read_streams(streams: jax.Array, weights: Mixing) -> jax.Array:
    """The mixture Σ_i pre_i X_i that a layer works on, (B, T, d)."""
    lanes = streams.shape[2]
    return sum((weights.pre[i][..., None] * streams[:, :, i] for i in range(1, lanes)),
               weights.pre[0][..., None] * streams[:, :, 0])  # fmt: skip


def write_streams(streams: jax.Array, update: jax.Array, weights: Mixing) -> jax.Array:
    """R·X + post ⊗ update, (B, T, n, d)."""
    lanes = streams.shape[2]
    mixed = [
        sum(
            (weights.residual[i, j][..., None] * streams[:, :, j] for j in range(lanes)),
            weights.post[i][..., None] * update,
        )
        for i in range(lanes)
    ]
    return jnp.stack(mixed, axis=2)


def sinkhorn(logits: jax.Array) -> jax.Array:
    """exp(logits) made doubly stochastic: rows, then columns, divided by their sums 20 times.

    logits (n, n, ...). The first round is on logarithms, where nothing overflows; after it every row and
    column has an entry of at least 1/n², so plain divisions give the same numbers without exponentials.
    """
    logits = logits - jax.nn.logsumexp(logits, axis=1, keepdims=True)
    logits = logits - jax.nn.logsumexp(logits, axis=0, keepdims=True)

    def normalise(matrix: jax.Array, _: None) -> tuple[jax.Array, None]:
        matrix = matrix / jnp.sum(matrix, axis=1, keepdims=True)
        return matrix / jnp.sum(matrix, axis=0, keepdims=True), None

    return jax.lax.scan(normalise, jnp.exp(logits), None, length=SINKHORN_ITERATIONS - 1)[0]


def _per_stream(values: jax.Array) -> jax.Array:
    """Per-stream numbers with two axes added for batch and time."""
    return values[..., None, None]
