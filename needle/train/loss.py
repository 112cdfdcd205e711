"""The loss of a packed batch, without ever forming the logits of tokens that are not learned."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

from needle.model.architecture import SimpleAttentionNetwork
from needle.model.bitmap import BitMap
from needle.model.fake_quantise import fake_quantised_params
from needle.model.lora import Adapter, collection, merge
from needle.train.step import Batch, LossSums, Params


def make_loss_sums(model: SimpleAttentionNetwork, scale: float, rounding: BitMap | None = None) -> LossSums:
    """(sum of cross entropies, number of targets) of a batch under an adapter of this scale.

    With `rounding` the merged kernels and the activations are rounded as in the model that ships; the rest
    of the base is expected rounded already, since it never changes.
    Only the states that predict a target are projected to the vocabulary: a static number of them, since
    `Batch.targets` is padded. A target is never the first token of its row, so the state before it exists.
    """

    def loss_sums(adapter: Adapter, base: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
        variables: dict[str, Any] = {"params": base, "lora": collection(adapter, scale)}
        if rounding:
            variables = {"params": fake_quantised_params(merge(base, adapter, scale), rounding, only=adapter)}
        quant = rounding is not None
        hidden = model.apply(variables, batch.tokens, quant=quant, segments=batch.segments, method="hidden")
        counted = batch.targets >= 0
        places = jnp.where(counted, batch.targets, 1)
        states = hidden.reshape(-1, hidden.shape[-1])[places - 1]
        logits = model.apply(variables, states, quant, method="project")
        entropies = optax.softmax_cross_entropy_with_integer_labels(logits, batch.tokens.reshape(-1)[places])
        return jnp.sum(jnp.where(counted, entropies, 0.0)), jnp.sum(counted)

    return loss_sums
