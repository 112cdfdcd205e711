"""Which examples a step sees, as a function of the seed and the step's number alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int32]


class TrainingOrder(NamedTuple):
    """Indices into the examples: those held out, and those of each epoch in its own order."""

    validation: Indices
    epochs: list[Indices]

    @property
    def training_count(self) -> int:
        return len(self.epochs[0])

    def steps_per_epoch(self, batch_size: int) -> int:
        """The last batch of an epoch may be short."""
        return -(-self.training_count // batch_size)

    def total_steps(self, batch_size: int) -> int:
        return len(self.epochs) * self.steps_per_epoch(batch_size)

    def batch(self, step: int, batch_size: int) -> Indices:
        """The examples of one step, counted from 0 over all epochs."""
        epoch, within = divmod(step, self.steps_per_epoch(batch_size))
        return self.epochs[epoch][within * batch_size : (within + 1) * batch_size]


def training_order(count: int, val_split: float, seed: int, epochs: int) -> TrainingOrder:
    """The split and every epoch's order from one generator (the model page, "Order").

    One permutation splits off `min(int(count * val_split), count - 1)` examples, then each epoch draws a
    permutation of what is left. `count` and `epochs` are at least 1.
    """
    if count < 1 or epochs < 1:
        raise ValueError(f"nothing to order: {count} examples, {epochs} epochs")
    generator = np.random.default_rng(seed)
    held_out = min(int(count * val_split), count - 1)
    examples = generator.permutation(count).astype(np.int32)
    training = examples[held_out:]
    orders = [training[generator.permutation(len(training))] for _ in range(epochs)]
    return TrainingOrder(examples[:held_out], orders)
