"""The attention kernels behind one call.

xla     jax.nn.dot_product_attention as the compiler sees fit; every backend
cudnn   the fused kernel of cuDNN: CUDA, 16-bit, never builds the T x T scores
manual  plain matrix products and a softmax, for backends that lack the primitive (Metal)
"""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp

from needle.model.visibility import Visibility

_UNSEEN = -1e30
Kernel = Literal["xla", "cudnn", "manual"]


def attend(
    query: jax.Array, key: jax.Array, value: jax.Array, *, kernel: Kernel, visibility: Visibility
) -> jax.Array:
    """Causal grouped-query softmax attention with scale 1/sqrt(head_dim).

    query (B, T, H, head_dim); key, value (B, T, K, head_dim), K dividing H. Returns (B, T, H, head_dim).
    """
    mask = visibility.matrix(query.shape[1])
    if kernel == "manual":
        return _manual(query, key, value, mask)
    return jax.nn.dot_product_attention(query, key, value, mask=mask, is_causal=True, implementation=kernel)


def _manual(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None) -> jax.Array:
    batch, length, heads, head_dim = query.shape
    kv_heads = key.shape[2]
    grouped = query.reshape(batch, length, kv_heads, heads // kv_heads, head_dim)
    scores = jnp.einsum("btkgd,bskd->bkgts", grouped, key, preferred_element_type=jnp.float32)
    seen = jnp.tril(jnp.ones((length, length), bool))
    if mask is not None:
        seen = seen & mask[:, :, None]
    scores = jnp.where(seen, scores / math.sqrt(head_dim), _UNSEEN)
    weights = jax.nn.softmax(scores, axis=-1).astype(value.dtype)
    return jnp.einsum("bkgts,bskd->btkgd", weights, value).reshape(query.shape)
