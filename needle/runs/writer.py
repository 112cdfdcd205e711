"""What a trainer uses to report."""

from __future__ import annotations


def report(step: int, **metrics: float) -> None:
    """Report metrics of one step to the run this process belongs to."""
