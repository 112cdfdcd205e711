from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from needle.train.optimizer import make_optimizer
from needle.train.state import TrainState
from needle.train.step import Batch, StepMetrics, evaluate_batch, global_norm, initial_state, train_step

OPTIMIZER = make_optimizer(1e-2, 10)
BASE = {"target": jnp.asarray(3.0)}


def loss_sums(adapter, base, batch):
    """A toy: the squared distance of the adapter from the target, weighted by the batch's tokens."""
    weights = batch.tokens.astype(jnp.float32)
    distance = jnp.sum(adapter["w"]["A"] - base["target"]) ** 2
    return jnp.sum(weights) * distance, jnp.sum(batch.segments)


def data_set(*weights: float) -> Batch:
    tokens = jnp.asarray(weights)[:, None, None]
    return Batch(tokens, jnp.ones_like(tokens), jnp.zeros((len(weights), 1), jnp.int32))


def state_now() -> TrainState:
    return initial_state({"w": {"A": jnp.ones(2), "B": jnp.zeros(2)}}, OPTIMIZER)


step = jax.jit(partial(train_step, loss_sums=loss_sums, optimizer=OPTIMIZER))


def steps(state: TrainState, *weights: float) -> tuple[TrainState, list[StepMetrics]]:
    told = []
    for position in range(len(weights)):
        state, metrics = step(state, BASE, data_set(*weights), np.int32(position))
        told.append(metrics)
    return state, told


def test_a_step_trains_on_the_batch_at_its_position_and_counts_itself() -> None:
    state, told = steps(state_now(), 1.0, 2.0, 0.5)
    assert [float(metrics.loss) for metrics in told[:2]] == [16.0, 32.0]
    assert int(state.step) == 3
    assert [float(metrics.lr) for metrics in told[:2]] == [0.0, pytest.approx(1e-2)]
    assert not np.array_equal(state.adapter["w"]["A"], np.ones(2))


def test_from_the_first_non_finite_step_the_state_stays_as_it_was_before_it() -> None:
    before, _ = steps(state_now(), 1.0, 1.0)
    after, told = steps(state_now(), 1.0, 1.0, float("inf"), 1.0)
    assert [bool(metrics.finite) for metrics in told] == [True, True, False, False]
    assert int(after.step) == 2
    for kept, wanted in zip(
        jax.tree.leaves((after.adapter, after.optimizer)),
        jax.tree.leaves((before.adapter, before.optimizer)),
        strict=True,
    ):
        np.testing.assert_array_equal(kept, wanted)


def test_a_batch_in_pieces_gives_the_update_of_the_whole_whatever_its_pieces_weigh() -> None:
    whole = Batch(
        jnp.asarray([[[1.0, 4.0, 0.0, 0.0]]]), jnp.asarray([[[1, 2, 0, 0]]]), jnp.zeros((1, 1), jnp.int32)
    )
    pieces = Batch(
        jnp.asarray([[[[1.0]], [[4.0]], [[0.0]]]]), jnp.asarray([[[[1]], [[2]], [[0]]]]), jnp.zeros((1, 3, 1))
    )
    at_once, told = step(state_now(), BASE, whole, np.int32(0))
    added_up, told_of_pieces = step(state_now(), BASE, pieces, np.int32(0))
    assert float(told.loss) == float(told_of_pieces.loss) == pytest.approx(80 / 3)
    assert float(told.grad_norm) == pytest.approx(float(told_of_pieces.grad_norm))
    for one, other in zip(
        jax.tree.leaves(at_once.optimizer), jax.tree.leaves(added_up.optimizer), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_an_evaluation_gives_sums_so_that_batches_weigh_by_their_targets() -> None:
    total, count = evaluate_batch(
        state_now().adapter, BASE, data_set(1.0, 4.0), np.int32(1), loss_sums=loss_sums
    )
    assert (float(total), int(count)) == (64.0, 1)


def test_the_norm_is_that_of_all_leaves_together() -> None:
    assert float(global_norm({"w": {"A": jnp.asarray([3.0]), "B": jnp.asarray([[4.0]])}})) == 5.0
