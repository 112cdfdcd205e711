"""The state of a chart, apart from any widget: its series, its window on the x axis, its cursor.

numpy is imported when the first points arrive, for the first paint of the cockpit does without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from needle_tui.text import inert
from needle_tui.widgets.chart_axis import AxisKind
from needle_tui.widgets.chart_header import empty_picture
from needle_tui.widgets.chart_look import SeriesLook, plain_look
from needle_tui.widgets.chart_picture import EMPTY, Picture
from needle_tui.widgets.chart_view import WHOLE, Extent, View, panned, zoomed
from needle_tui.widgets.glyphs import GlyphSet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from needle_tui.widgets.chart_buffer import SeriesBuffer
    from needle_tui.widgets.chart_drawing import Chart

    Numbers = NDArray[np.generic] | list[float] | list[int] | float


class Growable(Protocol):
    """An array or list of numbers, one for each point."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> Numbers: ...


@dataclass
class _Source:
    """A series: its points, its look, and what has been read of the arrays it comes from."""

    points: SeriesBuffer
    look: SeriesLook
    generation: int | None = None
    read: int = 0


class ChartModel:
    """What a chart shows. `width` is that of the plot in cells when it was last drawn."""

    def __init__(
        self, title: str, x_name: str, x_kind: AxisKind, glyph_set: GlyphSet, empty_text: str
    ) -> None:
        self.title = inert(title)
        self.empty_text = inert(empty_text)
        self.glyphs = glyph_set
        self.log_scale = False
        self.cursor: float | None = None
        self.width = 1
        self._smoothing = 0.0
        self._x_name, self._x_kind = inert(x_name), x_kind
        self._x_end: float | None = None
        self._series: dict[str, _Source] = {}
        self._marks: tuple[tuple[float, str], ...] = ()
        self._view: View = WHOLE

    def set_series(
        self, name: str, x: Growable, y: Growable, generation: int | None, look: SeriesLook | None
    ) -> bool:
        """As `LineChart.set_series`; returns whether there was anything new."""
        known = self._series.get(name)
        length = min(len(x), len(y))
        if known is None or generation is None or generation != known.generation or length < known.read:
            known = self._fresh(name, look)
        elif length == known.read and look in (None, known.look):
            return False
        known.look = look or known.look
        known.points.extend(x[known.read :], y[known.read :])
        known.generation, known.read = generation, length
        return True

    def append(self, name: str, x: Numbers, y: Numbers) -> None:
        """Add points to a series, which is made if it is not there yet."""
        known = self._series.get(name) or self._fresh(name, None)
        known.generation = None
        known.points.extend(x, y)

    def set_title(self, title: str) -> None:
        """The words at the upper left."""
        self.title = inert(title)

    def clear(self, name: str | None = None) -> None:
        """Remove a series, or all of them."""
        for gone in [name] if name is not None else list(self._series):
            self._series.pop(gone, None)

    @property
    def smoothing(self) -> float:
        """Weight of the past in the moving average, 0 (none) to 0.9999."""
        return self._smoothing

    @smoothing.setter
    def smoothing(self, smoothing: float) -> None:
        self._smoothing = min(max(smoothing, 0.0), 0.9999)
        for one in self._series.values():
            one.points.set_smoothing(self._smoothing)

    @property
    def window(self) -> tuple[float, float]:
        """The x values at the left and right end."""
        limits = self._view.limits(self._extent())
        return limits.low, limits.high

    def set_x_axis(self, name: str, kind: AxisKind, end: float | None) -> None:
        """As `LineChart.set_x_axis`."""
        if (inert(name), kind) != (self._x_name, self._x_kind):
            self.clear()
            self.reset()
            self._marks = ()
        self._x_name, self._x_kind, self._x_end = inert(name), kind, end

    def set_marks(self, marks: Iterable[tuple[float, str]]) -> None:
        """Vertical lines, each with a word."""
        self._marks = tuple((float(x), inert(label)) for x, label in marks)

    def zoom(self, factor: float) -> None:
        """Narrow the window around the cursor if it is in sight, else around the newest point."""
        low, high = self.window
        at = self.cursor if self.cursor is not None and low <= self.cursor <= high else None
        self._view = zoomed(self._view, self._extent(), factor, at)

    def pan(self, fraction: float) -> None:
        """Move the window by a fraction of its width."""
        self._view = panned(self._view, self._extent(), fraction)

    def reset(self) -> None:
        """Show everything, without a cursor."""
        self._view, self.cursor = WHOLE, None

    def move_cursor(self, cells: int) -> None:
        """Move the cursor by cells, to a point of the first series; it appears at the newest in sight."""
        points = next((one.points for one in self._series.values() if len(one.points)), None)
        if points is None:
            return
        low, high = self.window
        if self.cursor is None:
            self.cursor = points.stepped(min(high, points.last_x), 0.0)
        else:
            self.cursor = points.stepped(self.cursor, cells * (high - low) / self.width)
        if self.cursor is not None and not low <= self.cursor <= high:
            self.pan((self.cursor - low) / (high - low) - 0.5)

    def readings(self) -> dict[str, tuple[float, float]]:
        """By series, the point (x, value) nearest to the cursor, the last one without a cursor."""
        return {
            name: one.points.reading(self.cursor) for name, one in self._series.items() if len(one.points)
        }

    def draw(self, width: int, height: int) -> Picture:
        """The picture in `width` x `height` cells."""
        if width < 1 or height < 1:
            return EMPTY
        if not any(len(one.points) for one in self._series.values()):
            return empty_picture(self.title, self.empty_text, width, height)
        from needle_tui.widgets.chart_drawing import draw

        self.width = width
        return draw(self._chart(), width, height)

    def _chart(self) -> Chart:
        from needle_tui.widgets.chart_drawing import Chart, Mark, Series

        return Chart(
            series=tuple(Series(inert(name), one.points, one.look) for name, one in self._series.items()),
            x=self._view.limits(self._extent()),
            glyphs=self.glyphs,
            title=self.title,
            x_name=self._x_name,
            x_kind=self._x_kind,
            log=self.log_scale,
            marks=tuple(Mark(x, label) for x, label in self._marks),
            cursor=self.cursor,
        )

    def _extent(self) -> Extent:
        filled = [one.points for one in self._series.values() if len(one.points)]
        low = min((points.first_x for points in filled), default=0.0)
        high = max((points.last_x for points in filled), default=1.0)
        return Extent(low, high, self._x_kind, self._x_end)

    def _fresh(self, name: str, look: SeriesLook | None) -> _Source:
        """An empty series of that name; its look is the one it had, else the one of its place."""
        from needle_tui.widgets.chart_buffer import SeriesBuffer

        before = self._series.get(name)
        points = SeriesBuffer()
        points.set_smoothing(self._smoothing)
        made = _Source(points, look or (before.look if before else plain_look(len(self._series))))
        self._series[name] = made
        return made
