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

    A batch of `batch_size` examples is computed in pieces of `piece_size`, whose gradients are added up.
    `shape` and `most_targets`, the static number of target places, are of one piece; `tokens_before[s]` is
    how many useful tokens the steps before step s saw.
    """

    examples: Sequence[TokenizedExample]
    order: TrainingOrder
    batch_size: int
    piece_size: int
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

    @property
    def pieces(self) -> int:
        """How many pieces a batch is computed in; the last of a short batch may be all padding."""
        return -(-self.batch_size // self.piece_size)

    def batch(self, step: int) -> Batch:
        """The batch of one step, in host memory; with one more axis in front where it has several pieces."""
        members = self._members(step)
        starts = range(0, self.pieces * self.piece_size, self.piece_size)
        pieces = [
            to_batch(pack(members[start : start + self.piece_size], self.shape), self.most_targets)
            for start in starts
        ]
        return pieces[0] if len(pieces) == 1 else stacked(pieces)

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


def plan_batches(
    examples: Sequence[TokenizedExample], order: TrainingOrder, batch_size: int, piece_size: int = 0
) -> BatchPlan:
    """Look at every batch of the run once, to find the one shape that serves them all.

    A `piece_size` of 0, or one that is no smaller than the batch, computes each batch at once.
    """
    piece_size = min(piece_size or batch_size, batch_size)
    lengths = np.array([len(example) for example in examples], np.int32)
    targets = np.array([example.target_tokens for example in examples], np.int32)
    steps = range(order.total_steps(batch_size))
    members = [order.batch(step, batch_size) for step in steps]
    pieces = [
        of_step[start : start + piece_size]
        for of_step in members
        for start in range(0, len(of_step), piece_size)
    ]
    shape = _shape_for(plan_packing(lengths[of_piece] for of_piece in pieces), lengths[order.validation])
    validation = tuple(pack_all([examples[index] for index in order.validation], shape))
    if not len(order.validation):
        validation = ()
    counts = [
        *(int(targets[of_piece].sum()) for of_piece in pieces),
        *(one.target_tokens for one in validation),
    ]
    tokens = np.cumsum([0, *(int(lengths[of_step].sum()) for of_step in members)], dtype=np.int64)
    most_targets = _rounded_up(counts)
    return BatchPlan(examples, order, batch_size, piece_size, shape, most_targets, tokens, validation)


def to_batch(packed: PackedBatch, most_targets: int) -> Batch:
    """A packed batch with its targets as places, which is what the loss needs of the mask."""
    places = np.flatnonzero(packed.target_mask).astype(np.int32)
    targets = np.full(most_targets, -1, np.int32)
    targets[: len(places)] = places
    return Batch(packed.tokens, packed.segments, targets)


def stacked(batches: Iterable[Batch]) -> Batch:
    """Batches of one shape as one, along a new axis in front."""
    return Batch(*(np.stack(arrays) for arrays in zip(*batches, strict=True)))


def _shape_for(shape: Shape, validation_lengths: npt.NDArray[np.int32]) -> Shape:
    """Rows long enough for the longest validation example too, which no training batch had to hold."""
    longest = int(validation_lengths.max(initial=0))
    if longest <= shape.length:
        return shape
    return Shape(shape.rows, plan_packing([[longest]]).length)


def _rounded_up(counts: Iterable[int]) -> int:
    return -(-max(counts) // _TARGETS_STEP) * _TARGETS_STEP
