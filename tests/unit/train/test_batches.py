from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from needle.config import FinetuneSettings
from needle.data.order import training_order
from needle.data.packing import Shape, pack
from needle.data.tokenizer import TokenizedExample
from needle.model.architecture import Execution, SimpleAttentionNetwork
from needle.model.lora import init_lora
from needle.train.batches import BatchPlan, plan_batches, to_batch
from needle.train.inputs import read_inputs
from needle.train.loss import make_loss_sums
from needle.train.program import device_params


def example(line: int, length: int, targets: int) -> TokenizedExample:
    tokens = np.arange(line * 100, line * 100 + length, dtype=np.int32)
    return TokenizedExample(tokens, np.arange(length) >= length - targets, line)


EXAMPLES = [example(line, 20 + 3 * line, 1 + line) for line in range(1, 12)]


def plan(val_split: float = 0.2, epochs: int = 2) -> BatchPlan:
    return plan_batches(EXAMPLES, training_order(len(EXAMPLES), val_split, 0, epochs), batch_size=4)


def test_every_batch_of_the_run_has_one_shape_and_its_own_examples() -> None:
    batches = plan()
    for step in range(batches.total_steps):
        batch = batches.batch(step)
        assert batch.tokens.shape == batch.segments.shape == batches.shape
        assert batch.targets.shape == (batches.most_targets,)
        seen = {int(token) // 100 for token in batch.tokens[batch.segments > 0]}
        assert sorted(seen) == batches.lines(step)


def test_in_pieces_a_step_sees_the_same_examples_in_a_smaller_shape() -> None:
    order = training_order(len(EXAMPLES), 0.2, 0, 2)
    whole, pieces = plan(), plan_batches(EXAMPLES, order, batch_size=4, piece_size=2)
    assert pieces.pieces == 2
    assert pieces.shape.rows * pieces.shape.length < whole.shape.rows * whole.shape.length
    for step in range(pieces.total_steps):
        batch = pieces.batch(step)
        assert batch.tokens.shape == (2, *pieces.shape)
        assert batch.targets.shape == (2, pieces.most_targets)
        assert sorted({int(token) // 100 for token in batch.tokens[batch.segments > 0]}) == whole.lines(step)
        assert (batch.targets >= 0).sum() == (whole.batch(step).targets >= 0).sum()


def test_a_short_last_batch_ends_in_pieces_of_padding() -> None:
    batches = plan_batches(EXAMPLES, training_order(len(EXAMPLES), 0.2, 0, 1), batch_size=8, piece_size=1)
    last = batches.batch(1)
    assert [bool((segments > 0).any()) for segments in last.segments] == [True] + [False] * 7


def test_targets_are_the_places_of_the_masked_tokens_then_minus_one() -> None:
    packed = pack([example(1, 10, 3), example(2, 8, 2)], Shape(1, 64))
    batch = to_batch(packed, 8)
    assert batch.targets.tolist() == [7, 8, 9, 16, 17, -1, -1, -1]
    assert batch.tokens.reshape(-1)[batch.targets[:5]].tolist() == [107, 108, 109, 206, 207]


def test_useful_tokens_are_counted_without_padding_over_the_whole_run() -> None:
    batches = plan()
    lengths = {one.line: len(one) for one in EXAMPLES}
    for step in range(batches.total_steps):
        assert batches.tokens_of(step) == sum(lengths[line] for line in batches.lines(step))
    assert batches.tokens_before[0] == 0
    assert batches.tokens_before[-1] == sum(map(batches.tokens_of, range(batches.total_steps)))


def test_an_epoch_sees_every_training_example_once_and_no_held_out_one() -> None:
    batches = plan()
    held_out = {EXAMPLES[index].line for index in batches.order.validation}
    for epoch in range(2):
        first = epoch * batches.steps_per_epoch
        lines = [
            line for step in range(first, first + batches.steps_per_epoch) for line in batches.lines(step)
        ]
        assert sorted(lines) == sorted({one.line for one in EXAMPLES} - held_out)


def test_without_a_held_out_share_there_is_no_validation_batch() -> None:
    assert plan(val_split=0).validation == ()


def test_a_validation_example_longer_than_every_other_still_fits() -> None:
    order = training_order(2, 0.5, 0, 1)
    examples = [example(1, 30, 2), example(2, 30, 2)]
    examples[int(order.validation[0])] = example(9, 500, 2)
    batches = plan_batches(examples, order, batch_size=1)
    assert batches.shape.length >= 500
    assert batches.validation[0].useful_tokens == 500


def test_the_packed_loss_is_the_one_of_each_example_alone_in_its_row(golden: Path) -> None:
    short = 4
    settings = FinetuneSettings(
        data=str(golden / "train24.jsonl"), checkpoint=str(golden / "tiny.pkl"), batch_size=4
    )
    inputs = read_inputs(settings)
    base = device_params(inputs.base)
    lora = jax.tree.map(lambda leaf: leaf + 0.05, init_lora(inputs.base.params, 4, 0))
    loss_sums = jax.jit(make_loss_sums(SimpleAttentionNetwork(inputs.base.config), 2.0))

    total, count = loss_sums(lora, base, jax.tree.map(jnp.asarray, inputs.batches.batch(short)))
    alone = [
        loss_sums(lora, base, to_batch(pack([one], Shape(1, 512)), 256))
        for one in inputs.batches._members(short)
    ]
    assert int(count) == sum(int(counted) for _, counted in alone)
    assert float(total) == pytest.approx(sum(float(entropy) for entropy, _ in alone), rel=2e-5)


def test_in_bfloat16_the_loss_is_nearly_the_same_and_its_gradient_finite_and_float32(golden: Path) -> None:
    settings = FinetuneSettings(
        data=str(golden / "train24.jsonl"), checkpoint=str(golden / "tiny.pkl"), batch_size=4, val_split=0.25
    )
    inputs = read_inputs(settings)
    model = SimpleAttentionNetwork(inputs.base.config, Execution(dtype="bfloat16", remat=True))
    step = jax.jit(jax.value_and_grad(make_loss_sums(model, 2.0), has_aux=True))
    lora = init_lora(inputs.base.params, 4, 0)
    (total, count), gradient = step(
        lora, device_params(inputs.base), jax.tree.map(jnp.asarray, inputs.batches.batch(0))
    )
    published_first_loss = 7.0922
    assert float(total) / int(count) == pytest.approx(published_first_loss, rel=3e-3)
    for leaf in jax.tree.leaves(gradient):
        assert leaf.dtype == jnp.float32
        assert jnp.all(jnp.isfinite(leaf))
