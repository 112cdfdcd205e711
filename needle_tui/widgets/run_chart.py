"""A run's chart on Monitor: the line chart with keys that leave Monitor's own alone."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from needle.runs.metrics import Series
from needle_tui.widgets.chart_axis import AxisKind
from needle_tui.widgets.chart_look import SeriesLook
from needle_tui.widgets.line_chart import LineChart

X_AXES: dict[str, AxisKind] = {"step": "count", "time": "time", "tokens": "count"}


class RunChart(LineChart, inherit_bindings=False):
    """Zoom, pan and cursor by keys; smoothing and the log axis are the screen's, for all charts at once."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "cursor(-1)", "Read left"),
        Binding("right", "cursor(1)", "Read right"),
        Binding("ctrl+left", "cursor(-10)", "Read left by ten", show=False),
        Binding("ctrl+right", "cursor(10)", "Read right by ten", show=False),
        Binding("z", "zoom(2)", "Zoom in"),
        Binding("Z", "zoom(0.5)", "Zoom out"),
        Binding("comma", "pan(-0.5)", "Earlier", key_display=",", show=False),
        Binding("full_stop", "pan(0.5)", "Later", key_display=".", show=False),
        Binding("0", "reset", "Whole run", show=False),
        Binding("escape", "hide_cursor", "Hide the cursor", show=False),
    ]

    def show_series(self, series: Series, x_axis: str, look: SeriesLook | None = None) -> None:
        """Show a metric over steps, time or tokens; points seen before are not read again."""
        x = {"step": series.steps, "time": series.times, "tokens": series.tokens}[x_axis]
        if len(series):
            self.set_series(series.name, x, series.values, generation=series.generation, look=look)
