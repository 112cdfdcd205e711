"""The order of examples is a function of the seed and the step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.data.order import training_order


@given(
    count=st.integers(1, 200),
    val_split=st.floats(0, 0.99),
    seed=st.integers(0, 2**31 - 1),
    epochs=st.integers(1, 4),
    batch_size=st.integers(1, 50),
)
def test_every_training_example_comes_once_an_epoch_and_no_held_out_one(
    count, val_split, seed, epochs, batch_size
):
    order = training_order(count, val_split, seed, epochs)
    held_out = set(order.validation.tolist())
    assert len(held_out) == len(order.validation) == min(int(count * val_split), count - 1)
    steps = order.steps_per_epoch(batch_size)
    assert order.total_steps(batch_size) == steps * epochs
    for epoch in range(epochs):
        seen = [order.batch(step, batch_size) for step in range(epoch * steps, (epoch + 1) * steps)]
        assert sorted(np.concatenate(seen).tolist()) == sorted(set(range(count)) - held_out)


def test_the_order_is_that_of_the_published_implementation():
    generator = np.random.default_rng(7)
    split = generator.permutation(24)
    order = training_order(24, 0.25, 7, 2)
    assert order.validation.tolist() == split[:6].tolist()
    for epoch in order.epochs:
        assert epoch.tolist() == split[6:][generator.permutation(18)].tolist()


def test_the_split_is_drawn_even_when_it_holds_nothing_out():
    generator = np.random.default_rng(3)
    split = generator.permutation(5)
    order = training_order(5, 0.0, 3, 1)
    assert order.validation.tolist() == []
    assert order.epochs[0].tolist() == split[generator.permutation(5)].tolist()


def test_epochs_differ_in_order_and_repeat_with_the_seed():
    order = training_order(50, 0.1, 0, 2)
    assert order.epochs[0].tolist() != order.epochs[1].tolist()
    assert order.epochs[1].tolist() == training_order(50, 0.1, 0, 2).epochs[1].tolist()


def test_the_last_batch_of_an_epoch_is_short():
    order = training_order(10, 0.0, 0, 2)
    assert [len(order.batch(step, 4)) for step in range(6)] == [4, 4, 2, 4, 4, 2]


def test_nothing_to_order_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="nothing to order"):
        training_order(0, 0.1, 0, 1)
