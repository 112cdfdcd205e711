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
Layer = Callable[..., jax.Array]
Readings = Mapping[int, EngramReading]


def run_layers(
    params: Any, streams: jax.Array, readings: Readings, context: BlockContext, *, unroll: bool, remat: bool
) -> jax.Array:
    """Streams (B, T, n, d) float32 after every layer: `params` the `stack` subtree, `readings` by layer."""
    layers = {
        "block": params["layers"]["block"],
        "mixing": {name: jnp.asarray(params[f"mhc_{name}"], jnp.float32) for name in _MIXING},
    }
    layer: Layer = partial(_apply_layer, context)
    if remat:
        keep = jax.checkpoint_policies.save_only_these_names(ATTENDED)
        layer = jax.checkpoint(layer, policy=keep, prevent_cse=unroll)
    return (_run_unrolled if unroll else _run_scanned)(layer, layers, streams, readings)


def _run_unrolled(layer: Layer, layers: Any, streams: jax.Array, readings: Readings) -> jax.Array:
    for number in range(_count(layers)):
        params = jax.tree.map(itemgetter(number), layers)
        streams = layer(streams, params, number, readings.get(number), 1.0)
    return streams


def _run_scanned(layer: Layer, layers: Any, streams: jax.Array, readings: Readings) -> jax.Array:
    """One compiled layer, run over the stacked parameters.

    A site is chosen by number, and multiplied by 0 where a layer has none: cheaper than a branch on devices.
    """
    sites = sorted(readings)
    numbers = list(range(_count(layers)))
    site_of = [sites.index(number) if number in sites else 0 for number in numbers]
    present = [float(number in sites) for number in numbers]
    memory = (
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(readings[site] for site in sites))
        if sites
        else None
    )

    def step(streams: jax.Array, scanned: Any) -> tuple[jax.Array, None]:
        params, number, site, is_site = scanned
        reading = jax.tree.map(itemgetter(site), memory)
        return layer(streams, params, number, reading, is_site), None

    per_layer = (layers, jnp.array(numbers), jnp.array(site_of), jnp.array(present, jnp.float32))
    return jax.lax.scan(step, streams, per_layer)[0]


def _apply_layer(
    context: BlockContext,
    streams: jax.Array,
    params: Any,
    number: jax.Array | int,
    reading: EngramReading | None,
    present: jax.Array | float,
) -> jax.Array:
    weights = mixing(streams, params["mixing"], number)
    u = read_streams(streams, weights)
    remembered = u if reading is None else add_engram(u, reading, present)
    return write_streams(streams, apply_block(params["block"], remembered, context) - u, weights)


def _count(layers: Any) -> int:
    return int(jax.tree.leaves(layers)[0].shape[0])
