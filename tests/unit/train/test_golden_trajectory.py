"""The whole of training against a published implementation: every loss it printed, and its adapter."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from needle.config import FinetuneSettings
from needle.data.packing import pack
from needle.data.tokenizer import TokenizedExample
from needle.model.adapters import Adapter, load_adapter
from needle.model.architecture import Execution
from needle.model.bitmap import BitMap
from needle.model.lora import init_lora
from needle.train.batches import to_batch
from needle.train.feed import stack_batches
from needle.train.inputs import FinetuneInputs, read_inputs
from needle.train.loop import Work, run_loop
from needle.train.optimizer import make_optimizer
from needle.train.program import Program, Recipe, begin_compiling, load_program
from needle.train.state import TrainState
from needle.train.step import initial_state

LOSS_TOLERANCE = 1e-4
ADAPTER_TOLERANCE = 1e-4
ROUNDED_TOLERANCE = 3e-3
ROUNDED_ADAPTER_TOLERANCE = 2e-2
"""Choosing the nearest level amplifies rounding, so an independent implementation ends a little elsewhere."""


@dataclass
class Trajectory:
    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    adapter: Adapter = field(default_factory=dict)


def settings_of(golden: Path) -> FinetuneSettings:
    return FinetuneSettings(
        data=str(golden / "train24.jsonl"),
        checkpoint=str(golden / "tiny.pkl"),
        epochs=3,
        batch_size=4,
        lr=3e-3,
        lora_rank=4,
        lora_alpha=8,
        max_len=512,
        val_split=0.25,
        seed=0,
    )


def trained(golden: Path, *, on_device: bool, rounding: BitMap | None = None) -> Trajectory:
    settings = settings_of(golden)
    inputs = read_inputs(settings)
    batches = inputs.batches
    recipe = Recipe(
        base=inputs.base,
        batches=batches,
        optimizer=make_optimizer(settings.lr, batches.total_steps),
        rank=settings.lora_rank,
        scale=settings.lora_alpha / settings.lora_rank,
        execution=Execution(),
        on_device=on_device,
        rounding=rounding,
    )
    compiled, _ = begin_compiling(recipe).finish(lambda: False)
    program = load_program(recipe, compiled)
    adapter = init_lora(inputs.base.params, settings.lora_rank, settings.seed)
    state = initial_state(adapter, recipe.optimizer)
    found = Trajectory()

    def evaluate(state: TrainState) -> bool:
        found.validation.append(mean_of_batch_means(program, inputs, settings.batch_size, state.adapter))
        return False

    work = Work(
        fetch=program.feed,
        train_step=program.step,
        report=lambda _step, metrics, _timing: found.losses.append(float(metrics.loss)),
        evaluate=evaluate,
        save=lambda _state: None,
        save_due=lambda: False,
        stop_requested=lambda: False,
    )
    end = run_loop(
        state, work, first_step=0, total_steps=batches.total_steps, evaluate_every=batches.steps_per_epoch
    )
    program.feed.close()
    found.adapter = end.state.adapter
    return found


def mean_of_batch_means(program: Program, inputs: FinetuneInputs, batch_size: int, adapter: Adapter) -> float:
    """What the published implementation prints as `val`; ours is the mean over tokens."""
    assert program.evaluate is not None
    means = []
    for chunk in chunks([inputs.selected.examples[i] for i in inputs.batches.order.validation], batch_size):
        one = to_batch(pack(chunk, inputs.batches.shape), inputs.batches.most_targets)
        data_set, position = program.validation[0]
        padded = stack_batches(lambda _step, one=one: one, range(data_set.tokens.shape[0]))
        total, count = program.evaluate(adapter, program.base, padded, position)
        means.append(float(total) / int(count))
    return float(np.mean(means))


def chunks(examples: list[TokenizedExample], size: int) -> Iterator[list[TokenizedExample]]:
    yield from (examples[start : start + size] for start in range(0, len(examples), size))


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    return trained(Path(__file__).parents[2] / "golden", on_device=True)


@pytest.fixture(scope="module")
def rounded_trajectory() -> Trajectory:
    return trained(Path(__file__).parents[2] / "golden", on_device=True, rounding=BitMap(4))


def printed(golden: Path, name: str = "trajectory_none.txt") -> tuple[list[float], list[float]]:
    text = (golden / name).read_text()
    steps = [float(loss) for loss in re.findall(r"step +\d+/15 +loss ([\d.]+)", text)]
    return steps, [float(loss) for loss in re.findall(r"val ([\d.]+)", text)]


def test_every_loss_is_the_published_one(golden: Path, trajectory: Trajectory) -> None:
    losses, _ = printed(golden)
    assert len(losses) == 15
    np.testing.assert_allclose(trajectory.losses, losses, atol=LOSS_TOLERANCE, rtol=0)


def test_every_validation_loss_is_the_published_one(golden: Path, trajectory: Trajectory) -> None:
    _, validation = printed(golden)
    np.testing.assert_allclose(trajectory.validation, validation, atol=LOSS_TOLERANCE, rtol=0)


def test_the_adapter_is_the_published_one(golden: Path, trajectory: Trajectory) -> None:
    assert_adapters_agree(
        trajectory.adapter, load_adapter(golden / "adapter_none.pkl").lora, ADAPTER_TOLERANCE
    )


def assert_adapters_agree(found: Adapter, published: Adapter, tolerance: float) -> None:
    assert found.keys() == published.keys()
    for path, pair in published.items():
        for part, wanted in pair.items():
            error = np.linalg.norm(found[path][part] - wanted) / np.linalg.norm(wanted)
            assert error < tolerance, f"{path}/{part} differs by {error:.1e}"


def test_training_for_rounded_weights_prints_the_published_losses(
    golden: Path, rounded_trajectory: Trajectory
) -> None:
    losses, validation = printed(golden, "trajectory_auto.txt")
    assert len(losses) == 15
    np.testing.assert_allclose(rounded_trajectory.losses, losses, atol=ROUNDED_TOLERANCE, rtol=0)
    np.testing.assert_allclose(rounded_trajectory.validation, validation, atol=ROUNDED_TOLERANCE, rtol=0)


def test_the_adapter_for_rounded_weights_is_the_published_one(
    golden: Path, rounded_trajectory: Trajectory
) -> None:
    assert_adapters_agree(
        rounded_trajectory.adapter, load_adapter(golden / "adapter_auto.pkl").lora, ROUNDED_ADAPTER_TOLERANCE
    )


def test_batches_from_the_host_train_bit_for_bit_like_those_on_the_device(
    golden: Path, trajectory: Trajectory
) -> None:
    assert trained(golden, on_device=False).losses == trajectory.losses


def test_the_first_step_has_learning_rate_zero(trajectory: Trajectory) -> None:
    assert trajectory.losses[0] > trajectory.losses[-1]
