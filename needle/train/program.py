"""The compiled program of a fine-tuning run, and the data it is called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from needle.model.architecture import Execution, SimpleAttentionNetwork
from needle.model.attention import Kernel
from needle.model.configuration import TransformerConfig
from needle.model.lora import Adapter
from needle.model.parameters import flatten, parameter_shapes, unflatten
from needle.runs.record import Plan
from needle.train.batches import BatchPlan
from needle.train.compile import Compiled, Job, compile_all
from needle.train.feed import DeviceFeed, Feed, Fetched, HostFeed, stack_batches
from needle.train.loss import make_loss_sums
from needle.train.optimizer import Optimizer
from needle.train.state import TrainState
from needle.train.step import Batch, Params, StepMetrics, evaluate_batch, train_step


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
        for batches, index in self.validation:
            entropies, targets = self.evaluate(adapter, self.base, batches, index)
            total, count = total + float(entropies), count + int(targets)
        return total / count


def execution_of(plan: Plan) -> Execution:
    """How the plan says to compute. Metal has no good loop, so its layers are written out."""
    return Execution(
        kernel=cast(Kernel, plan.kernel.choice),
        dtype="bfloat16" if plan.precision.choice == "bfloat16" else "float32",
        unroll=plan.backend.choice == "METAL",
    )


def build_program(
    params: Params,
    config: TransformerConfig,
    batches: BatchPlan,
    state: TrainState,
    optimizer: Optimizer,
    *,
    scale: float,
    execution: Execution,
    on_device: bool,
    stop_requested: Callable[[], bool],
) -> tuple[Program, float]:
    """Put the base (and with `on_device` the data) on the device and compile. Also returns the seconds taken.

    Raises StoppedEarly when a stop is asked for meanwhile.
    """
    base = device_params(params, config)
    loss_sums = make_loss_sums(SimpleAttentionNetwork(config, execution), scale)
    train = Job(
        partial(train_step, loss_sums=loss_sums, optimizer=optimizer),
        (state, base, _shapes(batches, batches.steps_per_epoch if on_device else 1), _INDEX),
        donate=(0,),
    )
    validation = _validation(batches, on_device=on_device)
    evaluate = [
        Job(partial(evaluate_batch, loss_sums=loss_sums), (state.adapter, base, *found))
        for found in validation[:1]
    ]
    compiled, seconds = compile_all([train, *evaluate], stop_requested)
    feed: Feed = (
        DeviceFeed(batches.batch, batches.total_steps, batches.steps_per_epoch)
        if on_device
        else HostFeed(batches.batch, batches.total_steps)
    )
    return Program(compiled[0], compiled[1] if evaluate else None, base, feed, validation), seconds


def device_params(params: Params, config: TransformerConfig) -> Params:
    """The parameters that the forward pass needs, float32, on the device; output heads stay behind."""
    flat = flatten(params)
    needed = {path: jnp.asarray(flat[path], jnp.float32) for path in parameter_shapes(config)}
    return unflatten(needed)


_INDEX = jax.ShapeDtypeStruct((), jnp.int32)


def _shapes(batches: BatchPlan, count: int) -> Any:
    """A data set of `count` batches as shapes, for the compiler."""
    rows = jax.ShapeDtypeStruct((count, *batches.shape), jnp.int32)
    return Batch(rows, rows, jax.ShapeDtypeStruct((count, batches.most_targets), jnp.int32))  # type: ignore[arg-type]


def _validation(batches: BatchPlan, *, on_device: bool) -> tuple[tuple[Batch, np.int32], ...]:
    """The validation set: one data set on the device, or one for each batch in host memory."""
    count = len(batches.validation)
    if on_device and count:
        whole = jax.device_put(stack_batches(batches.validation_batch, range(count)))
        return tuple((whole, np.int32(number)) for number in range(count))
    return tuple((stack_batches(batches.validation_batch, [number]), np.int32(0)) for number in range(count))
