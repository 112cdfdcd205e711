"""The compiled program of a fine-tuning run, and the data it is called with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from needle.config import LORA_TARGETS
from needle.model.architecture import Execution, SimpleAttentionNetwork
from needle.model.attention import Kernel
from needle.model.bitmap import BitMap, parse_bit_map
from needle.model.fake_quantise import fake_quantised_params
from needle.model.lora import Adapter, lora_targets
from needle.model.parameters import flatten, parameter_shapes, unflatten
from needle.runs.record import Plan
from needle.train.batches import BatchPlan
from needle.train.compile import Compilation, Compiled, Job
from needle.train.feed import DeviceFeed, Feed, Fetched, HostFeed, stack_batches
from needle.train.inputs import Base
from needle.train.loss import make_loss_sums
from needle.train.optimizer import Optimizer
from needle.train.state import TrainState
from needle.train.step import Batch, Params, StepMetrics, evaluate_batch, initial_state, train_step


@dataclass(frozen=True, eq=False)
class Program:
    """`train` and `evaluate` are compiled for this run; `validation` is (data set, position) pairs."""

    train: Compiled
    evaluate: Compiled | None
    base: Params
    feed: Feed
    validation: tuple[tuple[Batch, np.int32], ...]

    def step(self, state: TrainState, fetched: Fetched) -> tuple[TrainState, StepMetrics]:
        """Dispatch one step; `state` is consumed."""
        stepped: tuple[TrainState, StepMetrics] = self.train(
            state, self.base, fetched.batches, fetched.position
        )
        return stepped

    def val_loss(self, adapter: Adapter) -> float | None:
        """Cross entropy of the mean target token of the validation set; None without one."""
        if self.evaluate is None:
            return None
        total, count = 0.0, 0
        for batches, position in self.validation:
            entropies, targets = self.evaluate(adapter, self.base, batches, position)
            total, count = total + float(entropies), count + int(targets)
        return total / count


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that decides the program of a run.

    With `on_device` the data set lives on the device. `rounding` is what the weights are trained for,
    None for exact weights; `targets` are the kernels that get an adapter, by short name.
    """

    base: Base
    batches: BatchPlan
    optimizer: Optimizer
    rank: int
    scale: float
    execution: Execution
    on_device: bool
    rounding: BitMap | None = None
    targets: tuple[str, ...] = LORA_TARGETS


def execution_of(plan: Plan) -> Execution:
    """How the plan says to compute.

    On a CPU a layer is recomputed sooner than read back from memory, and its program is the smaller one.
    Metal has no good loop, so its layers are written out.
    """
    platform = plan.backend.choice
    return Execution(
        kernel=cast(Kernel, plan.kernel.choice),
        dtype="bfloat16" if plan.precision.choice == "bfloat16" else "float32",
        unroll=platform == "METAL",
        remat=platform == "cpu",
    )


def begin_compiling(recipe: Recipe) -> Compilation:
    """Compile the step, and the evaluation where something is held out, from shapes alone."""
    model = SimpleAttentionNetwork(recipe.base.config, recipe.execution)
    loss_sums = make_loss_sums(model, recipe.scale, recipe.rounding)
    base, state = _base_shapes(recipe.base), state_shapes(recipe)
    steps = recipe.batches.steps_per_epoch if recipe.on_device else 1
    train = partial(train_step, loss_sums=loss_sums, optimizer=recipe.optimizer)
    pieces = (recipe.batches.pieces,) if recipe.batches.pieces > 1 else ()
    data = _data_shapes(recipe, (steps, *pieces))
    jobs = [Job(train, (state, base, data, _POSITION), donate=(0,))]
    held_out = len(recipe.batches.validation)
    if held_out:
        data = _data_shapes(recipe, (held_out if recipe.on_device else 1,))
        evaluate = partial(evaluate_batch, loss_sums=loss_sums)
        jobs.append(Job(evaluate, (state.adapter, base, data, _POSITION)))
    return Compilation(jobs)


def load_program(recipe: Recipe, compiled: list[Compiled]) -> Program:
    """Put the base, and with `on_device` the data, where the compiled functions take them from."""
    batches = recipe.batches
    feed: Feed = (
        DeviceFeed(batches.batch, batches.total_steps, batches.steps_per_epoch)
        if recipe.on_device
        else HostFeed(batches.batch, batches.total_steps)
    )
    evaluate = compiled[1] if len(compiled) > 1 else None
    base = device_params(recipe.base, recipe.rounding, recipe.targets)
    return Program(compiled[0], evaluate, base, feed, _validation(recipe))


def rounding_of(plan: Plan) -> BitMap | None:
    """The rounding that the plan trains for. Raises InputError for a map that a base carries and is wrong."""
    if plan.rounding is None or plan.rounding.choice == "none":
        return None
    return parse_bit_map(plan.rounding.choice)


def device_params(
    base: Base, rounding: BitMap | None = None, targets: Sequence[str] = LORA_TARGETS
) -> Params:
    """The parameters that the forward pass needs, float32, on the device; output heads stay behind.

    With `rounding`, all that training of these targets does not change is rounded here, once.
    """
    flat = flatten(base.params)
    needed = {path: np.asarray(flat[path], np.float32) for path in parameter_shapes(base.config)}
    placed: Params = jax.device_put(unflatten(needed))
    if rounding is None:
        return placed
    fixed = needed.keys() - set(lora_targets(base.params, targets))
    return fake_quantised_params(placed, rounding, only=fixed)


def state_shapes(recipe: Recipe) -> Any:
    """A TrainState of shapes: what `init_lora` and `initial_state` make, without making it."""
    shapes = parameter_shapes(recipe.base.config)
    adapter = {}
    for path in lora_targets(recipe.base.params, recipe.targets):
        layers, inputs, outputs = shapes[path]
        adapter[path] = {
            "A": jax.ShapeDtypeStruct((layers, inputs, recipe.rank), jnp.float32),
            "B": jax.ShapeDtypeStruct((layers, recipe.rank, outputs), jnp.float32),
        }
    return jax.eval_shape(partial(initial_state, optimizer=recipe.optimizer), adapter)


_POSITION = jax.ShapeDtypeStruct((), jnp.int32)


def _base_shapes(base: Base) -> Any:
    shapes = parameter_shapes(base.config)
    return unflatten({path: jax.ShapeDtypeStruct(shape, jnp.float32) for path, shape in shapes.items()})


def _data_shapes(recipe: Recipe, leading: tuple[int, ...]) -> Any:
    rows = jax.ShapeDtypeStruct((*leading, *recipe.batches.shape), jnp.int32)
    targets = jax.ShapeDtypeStruct((*leading, recipe.batches.most_targets), jnp.int32)
    return Batch(rows, rows, targets)  # type: ignore[arg-type]


def _validation(recipe: Recipe) -> tuple[tuple[Batch, np.int32], ...]:
    """The validation set: one data set on the device, or one for each batch in host memory."""
    make, count = recipe.batches.validation_batch, len(recipe.batches.validation)
    if recipe.on_device and count:
        whole = jax.device_put(stack_batches(make, range(count)))
        return tuple((whole, np.int32(number)) for number in range(count))
    return tuple((stack_batches(make, [number]), np.int32(0)) for number in range(count))
