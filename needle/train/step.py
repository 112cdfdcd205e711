"""One optimiser step and one evaluation, as pure functions that are compiled once.

The frozen base is its own argument, never part of the state; only what is trained is donated and saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from needle.model.lora import Adapter
from needle.train.optimizer import Optimizer
from needle.train.state import TrainState

Integers = jax.Array | npt.NDArray[np.int32]
Params = Mapping[str, Any]
LossSums = Callable[[Adapter, Params, "Batch"], tuple[jax.Array, jax.Array]]


class Batch(NamedTuple):
    """Packed rows and what is learned of them.

    tokens (R, T) int32; segments (R, T) int32, 0 in padding; targets (P,) int32, positions in the rows laid
    end to end of the tokens to predict, -1 where there are fewer. A batch computed in several pieces has one
    more axis in front of each array, and so has a data set of several batches.
    """

    tokens: Integers
    segments: Integers
    targets: Integers


class StepMetrics(NamedTuple):
    """What a step says, each (). `lr` is the rate it used; `finite` is False when its update was refused."""

    loss: jax.Array
    grad_norm: jax.Array
    lr: jax.Array
    finite: jax.Array


def initial_state(adapter: Adapter, optimizer: Optimizer) -> TrainState:
    """The state before the first step."""
    return TrainState(
        jnp.asarray(0, jnp.int32), adapter, optimizer.transform.init(adapter), jnp.asarray(True)
    )


def train_step(
    state: TrainState,
    base: Params,
    batches: Batch,
    index: jax.Array,
    *,
    loss_sums: LossSums,
    optimizer: Optimizer,
) -> tuple[TrainState, StepMetrics]:
    """One update of the adapter on batch `index` of `batches`.

    The loss is the sum of the cross entropies over the number of targets, over the whole batch, in however
    many pieces it is computed. From the first step whose loss or gradient is not finite, the state stays as
    it was before that step.
    """
    batch = jax.tree.map(lambda leaf: leaf[index], batches)
    loss, gradient = mean_and_gradient(state.adapter, base, batch, loss_sums)
    grad_norm = global_norm(gradient)
    updates, moments = optimizer.transform.update(gradient, state.optimizer, state.adapter)
    finite = state.finite & jnp.isfinite(loss) & jnp.isfinite(grad_norm)
    updated = TrainState(state.step + 1, optax.apply_updates(state.adapter, updates), moments, finite)
    kept = jax.tree.map(lambda new, old: jnp.where(finite, new, old), updated, state)
    metrics = StepMetrics(loss, grad_norm, jnp.asarray(optimizer.schedule(state.step)), finite)
    return kept._replace(finite=finite), metrics


def mean_and_gradient(
    adapter: Adapter, base: Params, batch: Batch, loss_sums: LossSums
) -> tuple[jax.Array, Adapter]:
    """The mean cross entropy of a batch and its gradient, of all pieces together where it has several."""
    sums = jax.value_and_grad(loss_sums, has_aux=True)

    def add(so_far: Any, piece: Batch) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, so_far, sums(adapter, base, piece)), None

    if batch.tokens.ndim == 2:
        (total, count), gradient = sums(adapter, base, batch)
    else:
        nothing = ((jnp.zeros(()), jnp.zeros((), jnp.int32)), jax.tree.map(jnp.zeros_like, adapter))
        ((total, count), gradient), _ = jax.lax.scan(add, nothing, batch)
    count = jnp.maximum(count, 1)
    return total / count, jax.tree.map(lambda leaf: leaf / count, gradient)


def evaluate_batch(
    adapter: Adapter, base: Params, batches: Batch, index: jax.Array, *, loss_sums: LossSums
) -> tuple[jax.Array, jax.Array]:
    """(sum of cross entropies, number of targets) of one batch, to be added up over the validation set."""
    return loss_sums(adapter, base, jax.tree.map(lambda leaf: leaf[index], batches))


def global_norm(tree: Adapter) -> jax.Array:
    """The length of all leaves as one vector, (). Optax has it under another name in each version."""
    return jnp.sqrt(
        sum((jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)), start=jnp.asarray(0.0))
    )
