"""Packing loses nothing, splits nothing, and finds the cheapest shape for a whole run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needle.data.packing import Shape, pack, pack_all, plan_packing
from needle.data.tokenizer import TokenizedExample


def example_of(length, number):
    """An example whose tokens are all its own, with a random looking mask."""
    tokens = np.arange(length, dtype=np.int32) + 1000 * (number + 1)
    return TokenizedExample(tokens, (np.arange(length) * 7 + number) % 3 == 0, number)


def unpacked(batch):
    """(tokens, mask) of every segment of a batch."""
    found = []
    for tokens, segments, mask in zip(batch.tokens, batch.segments, batch.target_mask, strict=True):
        places = [segments == segment for segment in range(1, segments.max() + 1)]
        found.extend((tokens[place], mask[place]) for place in places)
    return found


LENGTHS = st.lists(st.integers(2, 300), min_size=1, max_size=20)


@settings(deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=6))
def test_every_batch_of_the_run_packs_into_the_planned_shape_without_loss(batches):
    shape = plan_packing(batches)
    assert shape.length % 64 == 0
    for lengths in batches:
        examples = [example_of(length, number) for number, length in enumerate(lengths)]
        packed = pack(examples, shape)
        assert packed.tokens.shape == packed.segments.shape == packed.target_mask.shape == shape
        found = sorted(unpacked(packed), key=lambda one: one[0][0])
        assert len(found) == len(examples)
        for (tokens, mask), example in zip(found, examples, strict=True):
            np.testing.assert_array_equal(tokens, example.tokens)
            np.testing.assert_array_equal(mask, example.target_mask)
        assert packed.useful_tokens == sum(lengths) == (packed.segments > 0).sum()
        assert packed.target_tokens == sum(example.target_tokens for example in examples)
        assert not packed.tokens[packed.segments == 0].any()
        assert not packed.target_mask[packed.segments == 0].any()


@given(LENGTHS)
def test_an_example_lies_in_one_piece(lengths):
    packed = pack(
        [example_of(length, number) for number, length in enumerate(lengths)], plan_packing([lengths])
    )
    for row in packed.segments:
        used = row[row > 0]
        assert (np.diff(used) >= 0).all()
        assert (row[: len(used)] > 0).all()
        assert set(used.tolist()) == set(range(1, used.max(initial=0) + 1))


@settings(deadline=None)
@given(st.lists(LENGTHS, min_size=1, max_size=4), st.sampled_from([128, 1024, 8192]))
def test_no_other_length_would_be_cheaper(batches, attention_length):
    def cost(shape):
        return shape.rows * shape.length * (1 + shape.length / attention_length)

    def rows_needed(lengths, length):
        one_row = Shape(1, length)
        return len(pack_all([example_of(one, number) for number, one in enumerate(lengths)], one_row))

    best = plan_packing(batches, attention_length=attention_length)
    shortest = -(-max(max(lengths) for lengths in batches) // 64) * 64
    for length in range(shortest, max(sum(lengths) for lengths in batches) + 64, 64):
        other = Shape(max(rows_needed(lengths, length) for lengths in batches), length)
        assert cost(best) <= cost(other)


def test_short_examples_share_rows():
    assert plan_packing([[60] * 16, [50] * 16]) == Shape(16, 64)
    packed = pack([example_of(20, 0), example_of(30, 1), example_of(10, 2)], Shape(1, 64))
    assert packed.segments[0].max() == 3


def test_long_rows_are_chosen_only_where_attention_is_cheap():
    assert plan_packing([[100] * 16], attention_length=256) == Shape(16, 128)
    assert plan_packing([[100] * 16], attention_length=10**6) == Shape(1, 1600)


def test_examples_that_do_not_fit_are_refused_not_lost():
    with pytest.raises(ValueError, match="do not fit"):
        pack([example_of(60, 0), example_of(60, 1)], Shape(1, 64))
    with pytest.raises(ValueError, match="line 0 has 65 tokens"):
        pack([example_of(65, 0)], Shape(4, 64))


def test_a_validation_set_fills_as_few_batches_as_it_needs():
    batches = pack_all([example_of(30, number) for number in range(9)], Shape(2, 64))
    assert [batch.useful_tokens for batch in batches] == [120, 120, 30]
    assert {batch.tokens.shape for batch in batches} == {(2, 64)}


def test_no_examples_make_one_batch_of_padding():
    batches = pack_all([], Shape(2, 64))
    assert [(batch.useful_tokens, batch.target_tokens) for batch in batches] == [(0, 0)]


def test_a_run_without_batches_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="no batch"):
        plan_packing([])
