"""The adapter with the lowest validation loss so far: on disk from the moment it is found, resumed with.

Validation losses come at known steps, so when to give up waiting for a lower one follows from two numbers:
the step of the lowest and the step of now.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from needle.errors import NeedleError
from needle.model.adapters import AdapterFile, load_adapter, save_adapter


@dataclass(eq=False)
class BestAdapter:
    """Keeps the best adapter at `path`. A validation loss is expected every `every` steps.

    `adapter`, the best, and `latest` say their own step and validation loss; None before the first.
    """

    path: Path
    every: int
    patience: int
    adapter: AdapterFile | None = None
    latest: AdapterFile | None = None

    def restore(self, step: int) -> None:
        """Take up what an earlier attempt kept, unless it is of a step that this one has yet to do."""
        try:
            kept = load_adapter(self.path)
        except (NeedleError, OSError):
            return
        if kept.step is not None and kept.step <= step and kept.val_loss is not None:
            self.adapter = kept

    def consider(self, evaluated: AdapterFile) -> bool:
        """Keep an adapter if its loss is the lowest so far. Raises OSError or RunError when disk refuses."""
        self.latest = evaluated
        if not _loss(evaluated) < _loss(self.adapter):
            return False
        self.adapter = evaluated
        save_adapter(self.path, evaluated)
        return True

    def is_given_up(self, step: int) -> bool:
        """Whether `patience` losses in a row were not lower, after this many steps."""
        best = self.adapter.step if self.adapter else 0
        return self.patience > 0 and step // self.every - (best or 0) // self.every >= self.patience


def _loss(adapter: AdapterFile | None) -> float:
    """The validation loss of an adapter; infinite where there is none that is a number."""
    loss = adapter.val_loss if adapter else None
    return loss if loss is not None and math.isfinite(loss) else math.inf
