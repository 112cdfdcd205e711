"""The chart of a run's numbers over steps, time or tokens.

The state is in `chart_model`, the drawing in the other `chart_*` modules; here are the keys, the colours, and
sending to the terminal only the cells that changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from needle_tui.widgets import chart_look
from needle_tui.widgets.chart_axis import AxisKind
from needle_tui.widgets.chart_look import SeriesLook
from needle_tui.widgets.chart_model import ChartModel, Growable
from needle_tui.widgets.chart_picture import Picture
from needle_tui.widgets.glyphs import GlyphName, glyphs
from needle_tui.widgets.picture_widget import PictureWidget

if TYPE_CHECKING:
    from needle_tui.widgets.chart_model import Numbers

SMOOTHINGS = (0.0, 0.6, 0.9, 0.97, 0.99)

_STYLE_CLASSES = {
    chart_look.TITLE: "line-chart--title",
    chart_look.LABEL: "line-chart--label",
    chart_look.AXIS: "line-chart--axis",
    chart_look.MARK: "line-chart--mark",
    chart_look.BAD: "line-chart--bad",
    chart_look.CURSOR: "line-chart--cursor",
    chart_look.RAW: "line-chart--raw",
    chart_look.EMPTY: "line-chart--empty",
    **{str(number): f"line-chart--series-{number}" for number in range(1, chart_look.MAX_SERIES + 1)},
}


class LineChart(PictureWidget, can_focus=True):
    """Series of points as lines, with a window on x to zoom and pan, and a cursor to read values."""

    STYLE_CLASSES = _STYLE_CLASSES
    COMPONENT_CLASSES: ClassVar[set[str]] = set(_STYLE_CLASSES.values())
    DEFAULT_CSS = """
    LineChart { height: 1fr; min-height: 3; }
    LineChart > .line-chart--series-1 { color: $accent; }
    LineChart > .line-chart--series-2 { color: $secondary; }
    LineChart > .line-chart--series-3 { color: $success; }
    LineChart > .line-chart--series-4 { color: $error; }
    LineChart > .line-chart--series-5 { color: ansi_magenta; }
    LineChart > .line-chart--series-6 { color: $foreground; }
    LineChart > .line-chart--series-7 { color: ansi_cyan; }
    LineChart > .line-chart--series-8 { color: $warning; }
    LineChart > .line-chart--raw { color: $text-muted; }
    LineChart > .line-chart--title { color: $foreground; text-style: bold; }
    LineChart > .line-chart--label { color: $text-muted; }
    LineChart > .line-chart--axis { color: $text-muted; }
    LineChart > .line-chart--mark { color: $text-muted; }
    LineChart > .line-chart--bad { color: $error; }
    LineChart > .line-chart--cursor { color: $foreground; text-style: bold; }
    LineChart > .line-chart--empty { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign", "zoom(2)", "Zoom in", key_display="+"),
        Binding("minus", "zoom(0.5)", "Zoom out", key_display="-"),
        Binding("comma,shift+left", "pan(-0.5)", "Earlier", key_display=","),
        Binding("full_stop,shift+right", "pan(0.5)", "Later", key_display="."),
        Binding("0", "reset", "Whole run"),
        Binding("left", "cursor(-1)", "Read left", key_display="←"),
        Binding("right", "cursor(1)", "Read right", key_display="→"),
        Binding("ctrl+left", "cursor(-10)", "Read left by 10", show=False),
        Binding("ctrl+right", "cursor(10)", "Read right by 10", show=False),
        Binding("escape", "hide_cursor", "Hide cursor", show=False),
        Binding("l", "log_scale", "Log axis"),
        Binding("s", "smooth", "Smoothing"),
    ]

    def __init__(
        self,
        title: str = "",
        *,
        x_name: str = "step",
        x_kind: AxisKind = "count",
        glyph_set: GlyphName | None = None,
        empty_text: str = "no points yet",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._model = ChartModel(title, x_name, x_kind, glyphs(glyph_set), empty_text)

    def set_series(
        self,
        name: str,
        x: Growable,
        y: Growable,
        *,
        generation: int | None = None,
        look: SeriesLook | None = None,
    ) -> None:
        """Show these points, two arrays of the same length, as the series `name`.

        With the `generation` of the call before, the arrays are taken as the same ones grown at their end,
        and only the new points are read; without one, the points replace those there were.
        """
        if self._model.set_series(name, x, y, generation, look):
            self.redraw_soon()

    def append(self, name: str, x: Numbers, y: Numbers) -> None:
        """Add points (arrays or single numbers) to a series, which is made if it is not there yet."""
        self._model.append(name, x, y)
        self.redraw_soon()

    def clear(self, name: str | None = None) -> None:
        """Remove a series, or all of them."""
        self._model.clear(name)
        self.redraw_soon()

    @property
    def title(self) -> str:
        """The words at the upper left."""
        return self._model.title

    @title.setter
    def title(self, title: str) -> None:
        self._model.set_title(title)
        self.redraw()

    @property
    def log_scale(self) -> bool:
        """Whether the value axis is logarithmic."""
        return self._model.log_scale

    @log_scale.setter
    def log_scale(self, log_scale: bool) -> None:
        self._model.log_scale = log_scale
        self.redraw()

    @property
    def smoothing(self) -> float:
        """Weight of the past in the moving average, 0 (none) to 0.9999."""
        return self._model.smoothing

    @smoothing.setter
    def smoothing(self, smoothing: float) -> None:
        self._model.smoothing = smoothing
        self.redraw()

    @property
    def cursor(self) -> float | None:
        """The x at which values are read, None when hidden."""
        return self._model.cursor

    @cursor.setter
    def cursor(self, x: float | None) -> None:
        self._model.cursor = x
        self.redraw()

    @property
    def window(self) -> tuple[float, float]:
        """The x values at the left and right end."""
        return self._model.window

    def readings(self) -> dict[str, tuple[float, float]]:
        """By series, the point (x, value) nearest to the cursor, the last one without a cursor."""
        return self._model.readings()

    def set_x_axis(self, name: str, kind: AxisKind = "count", end: float | None = None) -> None:
        """Say what x is and, when known, where it ends. Another name or kind removes the points there are."""
        self._model.set_x_axis(name, kind, end)
        self.redraw_soon()

    def set_marks(self, marks: Iterable[tuple[float, str]]) -> None:
        """Draw a vertical line at each x, with its word: where a run was resumed."""
        self._model.set_marks(marks)
        self.redraw_soon()

    def zoom(self, factor: float) -> None:
        """Show a window `factor` times narrower, around the cursor if in sight, else at the newest point."""
        self._model.zoom(factor)
        self.redraw()

    def pan(self, fraction: float) -> None:
        """Move the window by a fraction of its width; at the newest point it follows again."""
        self._model.pan(fraction)
        self.redraw()

    def reset(self) -> None:
        """Show everything, without a cursor."""
        self._model.reset()
        self.redraw()

    def move_cursor(self, cells: int) -> None:
        """Move the cursor by cells, to a point of the first series; it appears at the newest in sight."""
        self._model.move_cursor(cells)
        self.redraw()

    def action_zoom(self, factor: float) -> None:
        self.zoom(factor)

    def action_pan(self, fraction: float) -> None:
        self.pan(fraction)

    def action_cursor(self, cells: int) -> None:
        self.move_cursor(cells)

    def action_reset(self) -> None:
        self.reset()

    def action_hide_cursor(self) -> None:
        self.cursor = None

    def action_log_scale(self) -> None:
        self.log_scale = not self.log_scale

    def action_smooth(self) -> None:
        larger = [one for one in SMOOTHINGS if one > self.smoothing]
        self.smoothing = larger[0] if larger else 0.0

    def draw(self, width: int, height: int) -> Picture:
        """The chart in `width` x `height` cells."""
        return self._model.draw(width, height)
