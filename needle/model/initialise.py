"""Fresh parameters: seeded, equal on every JAX version, computed without a checkpoint."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from needle.model.configuration import CONVOLUTION_TAPS, TransformerConfig, require_buildable

_STANDARD_DEVIATION = 0.02
Initialiser = Callable[[jax.Array], Any]
Leaves = dict[str, jax.Array]


def init_params(config: TransformerConfig, seed: int) -> dict[str, Any]:
    """The nested dict of float32 parameters for training from nothing, without the optional heads.

    Each leaf's key is the seed folded with the leaf's name, so adding a part never changes another.
    """
    require_buildable(config)
    with jax.threefry_partitionable(True):
        key = jax.random.PRNGKey(seed)
        return {name: make(key) for name, make in part_initialisers(config).items()}


def part_initialisers(config: TransformerConfig) -> dict[str, Initialiser]:
    """For every top-level name of the parameters, what makes its subtree from a key."""
    parts: dict[str, Initialiser] = {
        "embedding": lambda key: {
            "embedding": _normal(key, "embedding", (config.vocab_size, config.d_model))
        },
        "stack": lambda key: _stack(key, config),
        "mtp_emb_norm": lambda key: {"scale": jnp.zeros(config.d_model)},
        "mtp_combine": lambda key: {
            "kernel": _normal(key, "mtp_combine", (2 * config.d_model, config.d_model))
        },
        "mtp_block": lambda key: _block(key, "mtp_block", config, ()),
        "mtp_final_norm": lambda key: {"scale": jnp.zeros(config.d_model)},
    }
    for site in range(len(config.engram_layers)):
        parts[f"engrams_{site}"] = partial(_engram, name=f"engrams_{site}", config=config)
    return parts


def _stack(key: jax.Array, config: TransformerConfig) -> dict[str, Any]:
    layers, lanes = config.num_layers, config.mhc_lanes
    width = lanes * config.d_model
    return {
        "layers": {"block": _block(key, "stack", config, (layers,))},
        "mhc_phi_pre": _normal(key, "mhc_phi_pre", (layers, width, lanes)),
        "mhc_phi_post": _normal(key, "mhc_phi_post", (layers, width, lanes)),
        "mhc_phi_res": _normal(key, "mhc_phi_res", (layers, width, lanes * lanes)),
        "mhc_b_pre": jnp.zeros((layers, lanes)),
        "mhc_b_post": jnp.zeros((layers, lanes)),
        "mhc_b_res": jnp.broadcast_to(4.0 * jnp.eye(lanes), (layers, lanes, lanes)),
        "mhc_a_pre": jnp.full((layers,), 0.01),
        "mhc_a_post": jnp.full((layers,), 0.01),
        "mhc_a_res": jnp.full((layers,), 0.01),
        "final_norm": {"scale": jnp.zeros(config.d_model)},
    }


def _block(key: jax.Array, name: str, config: TransformerConfig, stacked: tuple[int, ...]) -> dict[str, Any]:
    """One block's parameters, with the axes `stacked` before each."""
    width, attention, size = config.d_model, config.attention_dim, config.hadamard_size
    projections = {
        "q_proj": (width, attention),
        "k_proj": (width, config.kv_dim),
        "v_proj": (width, config.kv_dim),
        "gate_proj": (width, attention),
        "out_proj": (attention, width),
    }
    attention_part: dict[str, Any] = {
        projection: {
            "kernel": _normal(key, f"{name}/{projection}", (*stacked, *shape), _deviation(projection, config))
        }
        for projection, shape in projections.items()
    }
    for norm in ("q_norm", "k_norm"):
        attention_part[norm] = {"scale": jnp.zeros((*stacked, config.head_dim))}
    return {
        "ZCRMSNorm_0": {"scale": jnp.zeros((*stacked, width))},
        "self_attn": attention_part,
        "post_attn_norm": {"scale": jnp.zeros((*stacked, width))},
        "pre_hada_norm": {"scale": jnp.zeros((*stacked, width))},
        "attn_gate": jnp.zeros(stacked),
        "hadamard_mlp": {
            "d1": jnp.ones((*stacked, size)),
            "d2": jnp.ones((*stacked, size)),
            "d3": jnp.full((*stacked, size), 0.02),
        },
    }


def _engram(key: jax.Array, name: str, config: TransformerConfig) -> dict[str, Any]:
    width = config.d_model
    tables = (config.engram_tables, config.engram_slots, config.engram_width)
    return {
        "embedding": _normal(key, f"{name}/embedding", tables),
        "key_proj": {"kernel": _normal(key, f"{name}/key_proj", (width, width))},
        "value_proj": {
            "kernel": _normal(key, f"{name}/value_proj", (width, width), _deviation("value_proj", config))
        },
        "taps": jnp.zeros((CONVOLUTION_TAPS, width)).at[0].set(1.0),
    }


def _deviation(name: str, config: TransformerConfig) -> float:
    """What writes to the residual starts smaller, so that depth does not enlarge the sum."""
    if name in ("out_proj", "value_proj"):
        return _STANDARD_DEVIATION / math.sqrt(2 * config.num_layers)
    return _STANDARD_DEVIATION


def _normal(
    key: jax.Array, name: str, shape: tuple[int, ...], deviation: float = _STANDARD_DEVIATION
) -> jax.Array:
    own = jax.random.fold_in(key, np.uint32(zlib.crc32(name.encode())))
    return deviation * jax.random.normal(own, shape, jnp.float32)
