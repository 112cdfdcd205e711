"""The names and shapes of a model's parameters, and the two forms of a parameter tree. No JAX.

A tree is a nested dict, as in published checkpoints; flat, its keys are paths joined by `/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from needle.model.configuration import CONVOLUTION_TAPS, TransformerConfig

Shape = tuple[int, ...]
Leaf = TypeVar("Leaf")

CONTRASTIVE_PROBES = 4
CONFIDENCE_PROBES = 8
STACK_ATTENTION = "stack/layers/block/self_attn"


def parameter_shapes(config: TransformerConfig) -> dict[str, Shape]:
    """Path -> shape of every parameter the forward pass needs; layer parameters stacked on axis 0."""
    stacked = (config.num_layers,)
    shapes: dict[str, Shape] = {"embedding/embedding": (config.vocab_size, config.d_model)}
    shapes |= _prefixed("stack/layers/block", _block_shapes(config, stacked))
    shapes |= _prefixed("stack", _mixing_shapes(config))
    shapes["stack/final_norm/scale"] = (config.d_model,)
    for site in range(len(config.engram_layers)):
        shapes |= _prefixed(f"engrams_{site}", _engram_shapes(config))
    return shapes


def optional_shapes(config: TransformerConfig) -> dict[str, dict[str, Shape]]:
    """By name, the groups a checkpoint may have beside: the multi-token head and two output heads."""
    width = config.d_model
    multi_token: dict[str, Shape] = {"mtp_combine/kernel": (2 * width, width)}
    multi_token |= _prefixed("mtp_block", _block_shapes(config, ()))
    multi_token |= {"mtp_emb_norm/scale": (width,), "mtp_final_norm/scale": (width,)}
    return {
        "mtp": multi_token,
        "contrastive_head": {
            "contrastive_head/probes": (CONTRASTIVE_PROBES, width),
            "contrastive_head/proj/kernel": (CONTRASTIVE_PROBES * width, config.contrastive_dim),
            "contrastive_head/log_temp": (),
        },
        "confidence_head": {
            "confidence_head/probes": (CONFIDENCE_PROBES, width),
            "confidence_head/proj/kernel": (CONFIDENCE_PROBES * width, 1),
            "confidence_head/proj/bias": (1,),
        },
    }


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Path -> leaf of a nested dict, paths sorted."""
    flat: dict[str, Any] = {}
    for name in sorted(tree):
        path = f"{prefix}/{name}" if prefix else name
        below = tree[name]
        flat |= flatten(below, path) if isinstance(below, Mapping) else {path: below}
    return flat


def unflatten(flat: Mapping[str, Leaf] | Iterable[tuple[str, Leaf]]) -> dict[str, Any]:
    """The nested dict of paths and leaves."""
    tree: dict[str, Any] = {}
    for path, leaf in dict(flat).items():
        *parents, name = path.split("/")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[name] = leaf
    return tree


def _prefixed(prefix: str, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    return {f"{prefix}/{name}": shape for name, shape in shapes.items()}


def _block_shapes(config: TransformerConfig, stacked: Shape) -> dict[str, Shape]:
    width: Shape = (config.d_model,)
    size: Shape = (config.hadamard_size,)
    shapes: dict[str, Shape] = {
        f"{norm}/scale": width for norm in ("ZCRMSNorm_0", "post_attn_norm", "pre_hada_norm")
    }
    shapes |= _prefixed("self_attn", _attention_shapes(config))
    shapes |= {"attn_gate": (), **{f"hadamard_mlp/{name}": size for name in ("d1", "d2", "d3")}}
    return {name: (*stacked, *shape) for name, shape in shapes.items()}


def _attention_shapes(config: TransformerConfig) -> dict[str, Shape]:
    wide, narrow = (config.d_model, config.attention_dim), (config.d_model, config.kv_dim)
    return {
        "q_proj/kernel": wide,
        "k_proj/kernel": narrow,
        "v_proj/kernel": narrow,
        "gate_proj/kernel": wide,
        "out_proj/kernel": (config.attention_dim, config.d_model),
        "q_norm/scale": (config.head_dim,),
        "k_norm/scale": (config.head_dim,),
    }


def _mixing_shapes(config: TransformerConfig) -> dict[str, Shape]:
    layers, lanes = config.num_layers, config.mhc_lanes
    wide = lanes * config.d_model
    shapes: dict[str, Shape] = {
        "mhc_phi_pre": (layers, wide, lanes),
        "mhc_phi_post": (layers, wide, lanes),
        "mhc_phi_res": (layers, wide, lanes * lanes),
        "mhc_b_pre": (layers, lanes),
        "mhc_b_post": (layers, lanes),
        "mhc_b_res": (layers, lanes, lanes),
    }
    return shapes | {f"mhc_a_{name}": (layers,) for name in ("pre", "post", "res")}


def _engram_shapes(config: TransformerConfig) -> dict[str, Shape]:
    return {
        "embedding": (config.engram_tables, config.engram_slots, config.engram_width),
        "key_proj/kernel": (config.d_model, config.d_model),
        "value_proj/kernel": (config.d_model, config.d_model),
        "taps": (CONVOLUTION_TAPS, config.d_model),
    }
