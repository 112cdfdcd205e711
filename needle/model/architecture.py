"""The Simple Attention Network of Needle 2, as a Flax module over pure functions.

Parameters are the nested dict of published checkpoints, layer parameters stacked on their first axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp

from needle.model.activations import fake_quantise_activations
from needle.model.attention import Kernel, attend
from needle.model.block import Attend, BlockContext, apply_block, linear
from needle.model.configuration import TransformerConfig, require_buildable
from needle.model.engram import EngramReading, engram_indices, read_engram
from needle.model.initialise import init_params, part_initialisers
from needle.model.norm import zero_centred_norm
from needle.model.presets import PRESETS
from needle.model.rotary import rotary_table
from needle.model.stack import run_layers
from needle.model.visibility import Visibility, make_visibility


@dataclass(frozen=True)
class Execution:
    """How to compute; none of it changes what is computed, beyond rounding.

    `unroll` writes every layer out instead of scanning: a larger program, for backends without a good loop.
    `remat` recomputes each layer in the backward pass instead of keeping its insides.
    """

    kernel: Kernel = "xla"
    dtype: Literal["float32", "bfloat16"] = "float32"
    unroll: bool = False
    remat: bool = False


class SimpleAttentionNetwork(nn.Module):
    """`apply({"params": params}, tokens) -> logits (B, T, vocab) float32`.

    A collection "lora" beside "params" (see `lora.collection`) is added to the attention kernels.
    `segments` (B, T) marks the examples of packed rows, 0 for padding; `mask` is a further restriction on
    who sees whom; `quant` rounds activations to `act_bits` where the exported model does.
    """

    config: TransformerConfig
    execution: Execution = Execution()

    def setup(self) -> None:
        require_buildable(self.config)
        fresh = part_initialisers(self.config)
        present = self.variables.get("params", {})
        wanted = [name for name in fresh if not name.startswith("mtp_") or name in present]
        self.parts = {name: self.param(name, fresh[name]) for name in wanted}

    def __call__(
        self,
        tokens: jax.Array,
        mask: jax.Array | None = None,
        quant: bool = False,
        segments: jax.Array | None = None,
    ) -> jax.Array:
        """Logits of the next token: tokens (B, T) int -> (B, T, vocab) float32."""
        return self.project(self.hidden(tokens, mask, quant, segments), quant)

    def hidden(
        self,
        tokens: jax.Array,
        mask: jax.Array | None = None,
        quant: bool = False,
        segments: jax.Array | None = None,
    ) -> jax.Array:
        """The normed final state (B, T, d) float32; `project` any part of it to logits."""
        visibility = make_visibility(segments, mask)
        context = self._context(jnp.arange(tokens.shape[1]), self._attend(visibility), quant)
        readings = self._read_engrams(tokens, visibility, context)
        return self._through_layers(tokens, readings, context, None)[0]

    def remembering(
        self,
        tokens: jax.Array,
        window: jax.Array,
        segments: jax.Array,
        positions: jax.Array,
        attend: Attend,
        memory: Any,
        quant: bool = False,
    ) -> tuple[jax.Array, Any]:
        """The final state of the newest tokens of longer texts, and the memory with them in it.

        tokens (B, T) at `positions` (T,) or (B, T) are the last of `window` (B, W), W >= T: as much of the
        text as the engrams look back on. `segments` (B, W) is 0 where there is no text. Returns (B, T, d).
        """
        length = tokens.shape[1]
        context = self._context(positions, attend, quant)
        readings = self._read_engrams(window, make_visibility(segments, None), context)
        newest = jax.tree.map(lambda leaf: leaf[:, -length:], readings)
        return self._through_layers(tokens, newest, context, memory)

    def _through_layers(
        self, tokens: jax.Array, readings: dict[int, EngramReading], context: BlockContext, memory: Any
    ) -> tuple[jax.Array, Any]:
        x = self._embed(tokens)
        streams = jnp.broadcast_to(x[:, :, None], (*x.shape[:2], self.config.mhc_lanes, x.shape[-1]))
        streams, memory = run_layers(
            self._adapted_stack(), streams, readings, context, memory,
            unroll=self.execution.unroll, remat=self.execution.remat,
        )  # fmt: skip
        scale = self.parts["stack"]["final_norm"]["scale"]
        return zero_centred_norm(jnp.mean(streams, axis=2), scale), memory

    def project(self, hidden: jax.Array, quant: bool = False) -> jax.Array:
        """Logits (..., vocab) float32 of final states (..., d), by the tied embedding."""
        hidden = self._quantiser(quant)(hidden)
        return hidden @ self.parts["embedding"]["embedding"].astype(jnp.float32).T

    def multi_token_logits(
        self, tokens: jax.Array, mask: jax.Array | None = None, segments: jax.Array | None = None
    ) -> jax.Array:
        """Logits of the token after the next one, (B, T, vocab) float32. Not used in fine-tuning."""
        attend = self._attend(make_visibility(segments, mask))
        context = self._context(jnp.arange(tokens.shape[1]), attend, quant=False)
        following = self._embed(jnp.pad(tokens[:, 1:], ((0, 0), (0, 1))))
        following = zero_centred_norm(following, self.parts["mtp_emb_norm"]["scale"])
        both = jnp.concatenate([self.hidden(tokens, mask, False, segments), following], axis=-1)
        merged = linear(self.parts["mtp_combine"], both.astype(context.dtype)).astype(jnp.float32)
        state, _ = apply_block(self.parts["mtp_block"], merged, context)
        return self.project(zero_centred_norm(state, self.parts["mtp_final_norm"]["scale"]))

    def _embed(self, tokens: jax.Array) -> jax.Array:
        rows = jnp.take(self.parts["embedding"]["embedding"], tokens, axis=0)
        return rows.astype(jnp.float32) * math.sqrt(self.config.d_model)

    def _quantiser(self, quant: bool) -> Any:
        return partial(fake_quantise_activations, bits=self.config.act_bits) if quant else lambda x: x

    def _attend(self, visibility: Visibility) -> Attend:
        """Attention within the tokens at hand, nothing remembered."""

        def attend_within(
            query: jax.Array, key: jax.Array, value: jax.Array, memory: Any, number: Any
        ) -> tuple[jax.Array, Any]:
            kernel = self.execution.kernel
            return attend(query, key, value, kernel=kernel, visibility=visibility), memory

        return attend_within

    def _context(self, positions: jax.Array, attend: Attend, quant: bool) -> BlockContext:
        return BlockContext(
            config=self.config,
            attend=attend,
            rotary=rotary_table(positions, self.config.head_dim, self.config.rope_theta),
            dtype=jnp.dtype(self.execution.dtype),
            quantise=self._quantiser(quant),
        )

    def _read_engrams(
        self, tokens: jax.Array, visibility: Visibility, context: BlockContext
    ) -> dict[int, EngramReading]:
        """What each engram site offers, by layer."""
        indices = engram_indices(tokens, self.config)
        readings = {}
        for site, layer in enumerate(self.config.engram_layers):
            part = _cast(self.parts[f"engrams_{site}"], context.dtype)
            readings[layer] = read_engram(part, indices, visibility, self.config, context.quantise)
        return readings

    def _adapted_stack(self) -> Any:
        """The stack's parameters, with the adapter's A and B beside the kernels they belong to."""
        adapter = self.variables.get("lora", {}).get("stack", {})
        return _overlay(self.parts["stack"], adapter)


def _cast(tree: Any, dtype: jnp.dtype) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)


def _overlay(tree: Any, extra: Any) -> Any:
    """A nested dict with the leaves of both; `extra` wins."""
    if not isinstance(extra, Mapping):
        return extra
    return {**tree, **{name: _overlay(tree.get(name, {}), below) for name, below in extra.items()}}


__all__ = ["PRESETS", "Execution", "SimpleAttentionNetwork", "TransformerConfig", "init_params"]
