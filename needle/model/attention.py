"""The attention kernels behind one call.

xla     jax.nn.dot_product_attention as the compiler sees fit; on the CPU the blocks below, 3 times as fast
cudnn   the fused kernel of cuDNN: CUDA, 16-bit, never builds the T x T scores
manual  matrix products and a softmax in blocks of queries, for backends that lack the primitive (Metal)
"""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp

from needle.model.visibility import Visibility

Kernel = Literal["xla", "cudnn", "manual"]

_BLOCK = 128
_UNSEEN = -1e30


def attend(
    query: jax.Array, key: jax.Array, value: jax.Array, *, kernel: Kernel, visibility: Visibility
) -> jax.Array:
    """Causal grouped-query softmax attention with scale 1/sqrt(head_dim).

    query (B, T, H, head_dim); key, value (B, T, K, head_dim), K dividing H. Returns (B, T, H, head_dim).
    """
    mask = visibility.matrix(query.shape[1])
    if kernel == "manual" or (kernel == "xla" and jax.default_backend() == "cpu"):
        return _in_blocks(query, key, value, mask)
    return jax.nn.dot_product_attention(query, key, value, mask=mask, is_causal=True, implementation=kernel)


def _in_blocks(query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None) -> jax.Array:
    """Attention block by block of queries, each over the keys up to its end, recomputed in the backward pass.

    What lies in the future is never computed, and the scores of one block stay in the cache.
    """
    batch, length, heads, head_dim = query.shape
    kv_heads = key.shape[2]
    query = query.reshape(batch, length, kv_heads, heads // kv_heads, head_dim) / math.sqrt(head_dim)
    query, key, value = jnp.einsum("btkgd->bkgtd", query), key.swapaxes(1, 2), value.swapaxes(1, 2)
    seen = jnp.tril(jnp.ones((1, length, length), bool))
    seen = seen if mask is None else seen & mask[:, 0]
    blocks = []
    for start in range(0, length, _BLOCK):
        end = min(start + _BLOCK, length)
        block_seen = seen[:, None, None, start:end, :end]
        blocks.append(_block(query[:, :, :, start:end], key[:, :, :end], value[:, :, :end], block_seen))
    return jnp.einsum("bkgtd->btkgd", jnp.concatenate(blocks, axis=3)).reshape(batch, length, heads, head_dim)


@jax.checkpoint
def _block(query: jax.Array, key: jax.Array, value: jax.Array, seen: jax.Array) -> jax.Array:
    """query (B, K, G, t, head_dim), scaled; key, value (B, K, S, head_dim); seen (B or 1, 1, 1, t, S)."""
    batch, kv_heads, group, length, head_dim = query.shape
    rows = query.reshape(batch, kv_heads, group * length, head_dim)
    scores = jnp.matmul(rows, key.swapaxes(-1, -2), preferred_element_type=jnp.float32)
    scores = jnp.where(seen, scores.reshape(batch, kv_heads, group, length, -1), _UNSEEN)
    weights = jax.nn.softmax(scores, axis=-1).astype(value.dtype)
    mixed = weights.reshape(batch, kv_heads, group * length, -1) @ value
    return mixed.reshape(query.shape)
