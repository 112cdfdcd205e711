"""What every step of a run sees, as a function of the step's number: one packed shape for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from needle.data.order import TrainingOrder
from needle.data.packing import PackedBatch, Shape, pack, pack_all, plan_packing
from needle.data.tokenizer import TokenizedExample
from needle.train.step import Batch

_TARGETS_STEP = 64


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """The batches of a run. Steps count from 0 over all epochs.

    `most_targets` is the static number of target places in a batch; `tokens_before[s]` is how many useful
    tokens the steps before step s saw.
    """

    examples: Sequence[TokenizedExample]
    order: TrainingOrder
    batch_size: int
    shape: Shape
    most_targets: int
    tokens_before: npt.NDArray[np.int64]
    validation: tuple[PackedBatch, ...]

    @property
    def steps_per_epoch(self) -> int:
        return self.order.steps_per_epoch(self.batch_size)

    @property
    def total_steps(self) -> int:
        return self.order.total_steps(self.batch_size)

    def batch(self, step: int) -> Batch:
        """The batch of one step, in host memory."""
        return to_batch(pack(self._members(step), self.shape), self.most_targets)

    def validation_batch(self, number: int) -> Batch:
        """One batch of the validation set."""
        return to_batch(self.validation[number], self.most_targets)

    def lines(self, step: int) -> list[int]:
        """The lines of the data file that a step sees."""
        return sorted(example.line for example in self._members(step))

    def tokens_of(self, step: int) -> int:
        """Useful tokens in one step: no padding."""
        return int(self.tokens_before[step + 1] - self.tokens_before[step])

    def _members(self, step: int) -> list[TokenizedExample]:
        return [self.examples[index] for index in self.order.batch(step, self.batch_size)]


def plan_batches(examples: Sequence[TokenizedExample], order: TrainingOrder, batch_size: int) -> BatchPlan:
    """Look at every batch of the run once, to find the one shape that serves them all."""
    lengths = np.array([len(example) for example in examples], np.int32)
    targets = np.array([example.target_tokens for example in examples], np.int32)
    steps = range(order.total_steps(batch_size))
    members = [order.batch(step, batch_size) for step in steps]
    shape = _shape_for(plan_packing(lengths[of_step] for of_step in members), lengths[order.validation])
    validation = tuple(pack_all([examples[index] for index in order.validation], shape))
    if not len(order.validation):
        validation = ()
    counts = [
        *(int(targets[of_step].sum()) for of_step in members),
        *(one.target_tokens for one in validation),
    ]
    tokens = np.cumsum([0, *(int(lengths[of_step].sum()) for of_step in members)], dtype=np.int64)
    return BatchPlan(examples, order, batch_size, shape, _rounded_up(counts), tokens, validation)


def to_batch(packed: PackedBatch, most_targets: int) -> Batch:
    """A packed batch with its targets as places, which is what the loss needs of the mask."""
    places = np.flatnonzero(packed.target_mask).astype(np.int32)
    targets = np.full(most_targets, -1, np.int32)
    targets[: len(places)] = places
    return Batch(packed.tokens, packed.segments, targets)


def _shape_for(shape: Shape, validation_lengths: npt.NDArray[np.int32]) -> Shape:
    """Rows long enough for the longest validation example too, which no training batch had to hold."""
    longest = int(validation_lengths.max(initial=0))
    if longest <= shape.length:
        return shape
    return Shape(shape.rows, plan_packing([[longest]]).length)


def _rounded_up(counts: Iterable[int]) -> int:
    return -(-max(counts) // _TARGETS_STEP) * _TARGETS_STEP
