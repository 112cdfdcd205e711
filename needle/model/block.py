"""One layer's block: engram, gated attention and the Hadamard MLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from needle.model.configuration import TransformerConfig
from needle.model.hadamard import walsh_transform
from needle.model.norm import zero_centred_norm
from needle.model.rotary import rotate

Attend = Callable[[jax.Array, jax.Array, jax.Array, Any, Any], tuple[jax.Array, Any]]
"""(query, key, value, memory, layer number) -> (attended, memory); see `BlockContext`."""

ATTENDED = "attended"
"""What a layer keeps when all else is recomputed: small, and the dearest to compute again."""


class BlockContext(NamedTuple):
    """What every layer of one forward pass shares.

    `attend` gets query (B, T, H, head_dim), key and value (B, T, K, head_dim), what was remembered of earlier
    positions by all layers (None in training) and which layer asks.
    """

    config: TransformerConfig
    attend: Attend
    rotary: tuple[jax.Array, jax.Array]
    dtype: jnp.dtype
    quantise: Callable[[jax.Array], jax.Array]


def apply_block(
    params: Any, u: jax.Array, context: BlockContext, memory: Any = None, number: jax.Array | int = 0
) -> tuple[jax.Array, Any]:
    """u (B, T, d) float32 after attention and MLP, and the memory; products in the context's dtype."""
    h = zero_centred_norm(u, params["ZCRMSNorm_0"]["scale"])
    attended, memory = gated_attention(params["self_attn"], h, context, memory, number)
    gate = jax.nn.sigmoid(params["attn_gate"].astype(jnp.float32))
    u = u + gate * zero_centred_norm(attended, params["post_attn_norm"]["scale"])
    normed = zero_centred_norm(u, params["pre_hada_norm"]["scale"])
    mixed = hadamard_mlp(params["hadamard_mlp"], normed.astype(context.dtype))
    return u + mixed.astype(jnp.float32), memory


def gated_attention(
    params: Any, h: jax.Array, context: BlockContext, memory: Any, number: jax.Array | int
) -> tuple[jax.Array, Any]:
    """Grouped-query attention with query and key norms, rotary positions and an output gate; (B, T, d)."""
    config = context.config
    h = context.quantise(h).astype(context.dtype)
    heads = (*h.shape[:2], -1, config.head_dim)
    query = zero_centred_norm(linear(params["q_proj"], h).reshape(heads), params["q_norm"]["scale"])
    key = zero_centred_norm(linear(params["k_proj"], h).reshape(heads), params["k_norm"]["scale"])
    value = linear(params["v_proj"], h).reshape(heads)
    query, key = _rotate(query, context), _rotate(key, context)
    attended, memory = context.attend(query, key, value, memory, number)
    attended = checkpoint_name(attended.reshape(*h.shape[:2], config.attention_dim), ATTENDED)
    attended = attended * jax.nn.sigmoid(linear(params["gate_proj"], h))
    return linear(params["out_proj"], context.quantise(attended)), memory


def hadamard_mlp(params: Any, z: jax.Array) -> jax.Array:
    """d3 · (silu(d2 · ((d1 · z)·W))·W), W the Walsh-Hadamard matrix, z (B, T, d) padded to a power of two."""
    width, size = z.shape[-1], params["d1"].shape[-1]
    if size != width:
        z = jnp.pad(z, ((0, 0), (0, 0), (0, size - width)))
    d1, d2, d3 = (params[name].astype(z.dtype) for name in ("d1", "d2", "d3"))
    z = walsh_transform(d1 * z)
    z = walsh_transform(jax.nn.silu(d2 * z))
    return (d3 * z)[..., :width]


def linear(params: Any, x: jax.Array) -> jax.Array:
    """x · kernel, plus (x · A)·B where an adapter is attached; in x's dtype.

    The low-rank product is applied apart: no gradient of a whole kernel is ever formed.
    """
    y = x @ params["kernel"].astype(x.dtype)
    if "A" in params:
        y = y + (x @ params["A"].astype(x.dtype)) @ params["B"].astype(x.dtype)
    return y


def _rotate(x: jax.Array, context: BlockContext) -> jax.Array:
    return rotate(x, context.rotary).astype(context.dtype)
