"""Which part of the x axis a chart shows, and how zooming and panning move it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from needle_tui.widgets.chart_axis import AxisKind, Limits, x_limits

_NARROWEST = 1e-9
"""The narrowest window, as a part of the whole or of the values in it."""


@dataclass(frozen=True)
class Extent:
    """The x values there are, and where they will end when that is known."""

    low: float
    high: float
    kind: AxisKind = "count"
    end: float | None = None

    @property
    def limits(self) -> Limits:
        """The whole of it on round numbers."""
        return x_limits(self.low, self.high, kind=self.kind, end=self.end)


@dataclass(frozen=True)
class View:
    """A window on the x axis. `width` None shows everything; `follow` keeps the newest point in it."""

    low: float = 0.0
    width: float | None = None
    follow: bool = True

    def limits(self, extent: Extent) -> Limits:
        """The window's limits now."""
        whole = extent.limits
        if self.width is None or self.width >= whole.high - whole.low:
            return whole
        if self.follow:
            # The window moves in steps of a tenth, so that most new points leave the picture where it is.
            step = self.width / 10
            high = min(whole.high, math.ceil(extent.high / step) * step)
            return Limits(high - self.width, high)
        return Limits(self.low, self.low + self.width)


WHOLE = View()


def zoomed(view: View, extent: Extent, factor: float, at: float | None) -> View:
    """The view `factor` times narrower (wider below 1) around `at`, the newest point or its middle."""
    now, whole = view.limits(extent), extent.limits
    if not (math.isfinite(factor) and factor > 0):
        return view
    width = max((now.high - now.low) / factor, _least_width(whole, extent))
    if width >= whole.high - whole.low:
        return WHOLE
    if at is None and view.follow and now.high >= extent.high:
        return View(now.high - width, width, follow=True)
    centre = now.at(0.5) if at is None else at
    share = now.share(centre)
    return _placed(centre - share * width, width, whole, extent)


def panned(view: View, extent: Extent, fraction: float) -> View:
    """The view moved by `fraction` of its width; moved to the newest point it follows again."""
    now, whole = view.limits(extent), extent.limits
    width = now.high - now.low
    if view.width is None or not math.isfinite(fraction):
        return view
    return _placed(now.low + fraction * width, width, whole, extent)


def _placed(low: float, width: float, whole: Limits, extent: Extent) -> View:
    """A window inside the whole."""
    low = min(max(low, whole.low), max(whole.low, whole.high - width))
    return View(low, width, follow=low + width >= extent.high)


def _least_width(whole: Limits, extent: Extent) -> float:
    largest = max(abs(whole.low), abs(whole.high))
    least = max((whole.high - whole.low) * _NARROWEST, largest * _NARROWEST)
    return max(least, 4.0) if extent.kind == "count" else least
