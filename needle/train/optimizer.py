"""The optimiser of a fine-tuning run: clipped AdamW under a warm-up and a cosine (Loshchilov & Hutter)."""

from __future__ import annotations

from typing import NamedTuple

import optax

CLIP_NORM = 1.0
_WARMUP_SHARE = 20


class Optimizer(NamedTuple):
    """`transform` updates the adapter; `schedule(step)` is the learning rate of the step numbered from 0."""

    transform: optax.GradientTransformation
    schedule: optax.Schedule


def make_optimizer(peak_lr: float, total_steps: int) -> Optimizer:
    """Clip to norm 1, then AdamW (Optax's weight decay 1e-4); the rate rises from 0, then falls to 0.

    The first step has learning rate 0 unless there is only one.
    """
    schedule = optax.warmup_cosine_decay_schedule(0.0, peak_lr, warmup_steps(total_steps), total_steps)
    transform = optax.chain(optax.clip_by_global_norm(CLIP_NORM), optax.adamw(schedule))
    return Optimizer(transform, schedule)


def warmup_steps(total_steps: int) -> int:
    """A twentieth of the run, at least one step, always leaving one to decay."""
    return min(max(1, total_steps // _WARMUP_SHARE), total_steps - 1)
