"""Exponential moving averages of long and growing series."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from needle_tui.widgets.chart_axis import LARGEST

Floats = NDArray[np.float64]

_BLOCK = 64


class Smoother:
    """The running average `m = s m + (1 - s) y`, divided by the weight gathered so far.

    The division (bias correction, as in Adam) keeps the start of a curve true; points that are not finite
    have no weight, so the average bridges them.
    """

    def __init__(self, smoothing: float) -> None:
        self.smoothing = min(max(float(smoothing), 0.0), 0.9999)
        self._total = 0.0
        self._weight = 0.0

    def extend(self, values: Floats) -> Floats:
        """Averages (n,) at the next values (n,); NaN where a value is not finite."""
        if not len(values):
            return np.empty(0, np.float64)
        finite = np.isfinite(values)
        # A sum that overflowed would spoil every average after it.
        tamed = np.where(finite, np.clip(values, -LARGEST, LARGEST), 0.0)
        totals = _averaged(tamed, self.smoothing, self._total)
        weights = _averaged(finite.astype(np.float64), self.smoothing, self._weight)
        self._total, self._weight = float(totals[-1]), float(weights[-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(finite, totals / weights, np.nan)


def _averaged(values: Floats, decay: float, start: float) -> Floats:
    """`m_i = decay m_{i-1} + (1 - decay) v_i` from `m_{-1} = start`, without a loop over the points.

    Within blocks the recursion is one matrix product; from block to block it is the same recursion again.
    """
    padding = -len(values) % _BLOCK
    blocks = np.pad(values, (0, padding)).reshape(-1, _BLOCK)
    powers = decay ** np.arange(_BLOCK + 1, dtype=np.float64)
    kernel = np.tril(powers[np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK)).clip(0)]) * (1 - decay)
    inside = blocks @ kernel.T
    if len(blocks) == 1:
        carried = np.array([start])
    else:
        ends = _carried(inside[:-1, -1], float(powers[-1]), start)
        carried = np.concatenate([[start], ends])
    result: Floats = (inside + carried[:, None] * powers[1:]).ravel()[: len(values)]
    return result


def _carried(ends: Floats, decay: float, start: float) -> Floats:
    """`c_i = decay c_{i-1} + e_i`: the average at each block's end."""
    if decay < 1e-300 or len(ends) <= 1:
        return ends + decay * np.concatenate([[start], ends[:-1]])
    return _averaged(ends / (1 - decay), decay, start)
