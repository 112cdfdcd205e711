"""One layer's block: engram, gated attention and the Hadamard MLP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from needle.model.attention import Kernel, attend
from needle.model.configuration import TransformerConfig
from needle.model.hadamard import walsh_transform
from needle.model.norm import zero_centred_norm
from needle.model.rotary import rotate
from needle.model.visibility import Visibility

ATTENDED = "attended"
"""What a layer keeps when all else is recomputed: small, and the dearest to compute again."""


class BlockContext(NamedTuple):
    """What every layer of one forward pass shares."""

    config: TransformerConfig
    visibility: Visibility
    rotary: tuple[jax.Array, jax.Array]
    kernel: Kernel
    dtype: jnp.dtype
    quantise: Callable[[jax.Array], jax.Array]


def apply_block(params: Any, u: jax.Array, context: BlockContext) -> jax.Array:
    """u (B, T, d) float32 -> the same after attention and MLP; matrix products in the context's dtype."""
    attended = gated_attention(
        params["self_attn"], zero_centred_norm(u, params["ZCRMSNorm_0"]["scale"]), context
    )
    gate = jax.nn.sigmoid(params["attn_gate"].astype(jnp.float32))
    u = u + gate * zero_centred_norm(attended, params["post_attn_norm"]["scale"])
    normed = zero_centred_norm(u, params["pre_hada_norm"]["scale"])
    return u + hadamard_mlp(params["hadamard_mlp"], normed.astype(context.dtype)).astype(jnp.float32)


def gated_attention(params: Any, h: jax.Array, context: BlockContext) -> jax.Array:
    """Grouped-query attention with query and key norms, rotary positions and an output gate; (B, T, d)."""
    config = context.config
    h = context.quantise(h).astype(context.dtype)
    heads = (*h.shape[:2], -1, config.head_dim)
    query = zero_centred_norm(linear(params["q_proj"], h).reshape(heads), params["q_norm"]["scale"])
    key = zero_centred_norm(linear(params["k_proj"], h).reshape(heads), params["k_norm"]["scale"])
    attended = attend(
        _rotate(query, context),
        _rotate(key, context),
        linear(params["v_proj"], h).reshape(heads),
        kernel=context.kernel,
        visibility=context.visibility,
    ).reshape(*h.shape[:2], config.attention_dim)
    attended = checkpoint_name(attended, ATTENDED)
    attended = attended * jax.nn.sigmoid(linear(params["gate_proj"], h))
    return linear(params["out_proj"], context.quantise(attended))


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
