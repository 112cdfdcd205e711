"""All layers over the residual streams: scanned, or written out one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp

from needle.model.block import ATTENDED, BlockContext, apply_block
from needle.model.engram import EngramReading, add_engram
from needle.model.streams import mixing, read_streams, write_streams

_MIXING = ("phi_pre", "phi_post", "phi_res", "b_pre", "b_post", "b_res", "a_pre", "a_post", "a_res")
Carried = tuple[jax.Array, Any]
"""Streams, and the memory of `run_layers`."""
Layer = Callable[..., Carried]
Readings = Mapping[int, EngramReading]


def run_layers(
    params: Any, streams: jax.Array, readings: Readings, context: BlockContext, memory: Any = None,
    *, unroll: bool, remat: bool,
) -> tuple[jax.Array, Any]:  # fmt: skip
    """Streams (B, T, n, d) float32 after every layer, and the memory that went through them.

    `params` is the `stack` subtree, `readings` are by layer, `memory` is what `context.attend` keeps.
    """
    layers = {
        "block": params["layers"]["block"],
        "mixing": {name: jnp.asarray(params[f"mhc_{name}"], jnp.float32) for name in _MIXING},
    }
    layer: Layer = partial(_apply_layer, context)
    if remat:
        keep = jax.checkpoint_policies.save_only_these_names(ATTENDED)
        layer = jax.checkpoint(layer, policy=keep, prevent_cse=unroll)
    return (_run_unrolled if unroll else _run_scanned)(layer, layers, (streams, memory), readings)


def _run_unrolled(layer: Layer, layers: Any, carried: Carried, readings: Readings) -> Carried:
    for number in range(_count(layers)):
        params = jax.tree.map(itemgetter(number), layers)
        carried = layer(carried, params, number, readings.get(number), 1.0)
    return carried


def _run_scanned(layer: Layer, layers: Any, carried: Carried, readings: Readings) -> Carried:
    """One compiled layer, run over the stacked parameters.

    A site is chosen by number, and multiplied by 0 where a layer has none: cheaper than a branch on devices.
    """
    sites = sorted(readings)
    numbers = list(range(_count(layers)))
    site_of = [sites.index(number) if number in sites else 0 for number in numbers]
    present = [float(number in sites) for number in numbers]
    offered = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(readings[site] for site in sites))
        if sites
        else None
    )

    def step(carried: Carried, scanned: Any) -> tuple[Carried, None]:
        params, number, site, is_site = scanned
        reading = jax.tree.map(itemgetter(site), offered)
        return layer(carried, params, number, reading, is_site), None

    per_layer = (layers, jnp.array(numbers), jnp.array(site_of), jnp.array(present, jnp.float32))
    return jax.lax.scan(step, carried, per_layer)[0]


def _apply_layer(
    context: BlockContext,
    carried: Carried,
    params: Any,
    number: jax.Array | int,
    reading: EngramReading | None,
    present: jax.Array | float,
) -> Carried:
    streams, memory = carried
    weights = mixing(streams, params["mixing"], number)
    u = read_streams(streams, weights)
    remembered = u if reading is None else add_engram(u, reading, present)
    changed, memory = apply_block(params["block"], remembered, context, memory, number)
    return write_streams(streams, changed - u, weights), memory


def _count(layers: Any) -> int:
    return int(jax.tree.leaves(layers)[0].shape[0])
