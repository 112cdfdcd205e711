"""One chart widget in one Textual app, redrawn ten times a second: the child of `benchmarks.charts`.

It runs in whichever environment has the widget, so it imports only what that widget needs.

python chart_child.py SUBJECT POINTS SECONDS RESULT.json
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from textual.app import App, ComposeResult
from textual.widget import Widget

UPDATES_PER_S = 10
WARM_UP_UPDATES = 5


class Ours:
    """Our LineChart, drawing every update."""

    def make(self) -> Widget:
        from needle_tui.widgets.line_chart import LineChart

        LineChart.REDRAW_INTERVAL_S = 0.0
        self.chart = LineChart("loss", glyph_set="braille")
        return self.chart

    def update(self, x: np.ndarray, y: np.ndarray) -> None:
        self.chart.set_series("train", x, y, generation=1)


class TextualPlot:
    """textual-plot as its documentation shows it, with braille lines."""

    def make(self) -> Widget:
        from textual_plot import HiResMode, PlotWidget

        self.mode = HiResMode.BRAILLE
        self.plot = PlotWidget()
        return self.plot

    def update(self, x: np.ndarray, y: np.ndarray) -> None:
        self.plot.clear()
        self.plot.plot(x, y, hires_mode=self.mode)


class TextualPlotext:
    """textual-plotext as its documentation shows it, with braille lines."""

    def make(self) -> Widget:
        from textual_plotext import PlotextPlot

        self.plot = PlotextPlot()
        return self.plot

    def update(self, x: np.ndarray, y: np.ndarray) -> None:
        self.plot.plt.clear_data()
        self.plot.plt.plot(x.tolist(), y.tolist(), marker="braille")
        self.plot.refresh()


SUBJECTS = {
    "ours": Ours,
    "ours-narrow": Ours,
    "textual-plot": TextualPlot,
    "textual-plotext": TextualPlotext,
}


class Bench(App[dict[str, float]]):
    """Feeds the widget and counts CPU time, and bytes where the app hands them to its terminal."""

    CSS = "#subject { width: 100; height: 24; }"

    def __init__(self, name: str, points: int, seconds: float) -> None:
        super().__init__()
        self.subject = SUBJECTS[name]()
        self.is_narrow = name == "ours-narrow"
        self.points, self.seconds = points, seconds
        self.sent_bytes = 0
        total = points + int(seconds * UPDATES_PER_S) + WARM_UP_UPDATES + 1
        self.x = np.arange(total, dtype=float)
        noise = np.random.default_rng(0).normal(0, 0.05, total)
        self.y = 2.5 * np.exp(-self.x / total * 4) + 0.4 + noise

    def compose(self) -> ComposeResult:
        widget = self.subject.make()
        widget.id = "subject"
        yield widget

    def on_mount(self) -> None:
        driver: Any = self._driver
        write = driver.write

        def counted(data: str) -> None:
            self.sent_bytes += len(data.encode())
            write(data)

        driver.write = counted
        self.run_worker(self.measure())

    def _display(self, screen: Any, renderable: Any) -> None:
        if self.is_narrow:
            from needle_tui.narrow_update import narrowed

            renderable = narrowed(renderable)
        super()._display(screen, renderable)

    async def measure(self) -> None:
        """Grow the series by a point ten times a second; an update that comes too late is left out."""
        for _ in range(WARM_UP_UPDATES):
            self.update_points()
            await asyncio.sleep(1 / UPDATES_PER_S)
        started, cpu, sent = time.perf_counter(), time.process_time(), self.sent_bytes
        frames = 0
        while (elapsed := time.perf_counter() - started) < self.seconds:
            self.update_points()
            frames += 1
            next_tick = (int(elapsed * UPDATES_PER_S) + 1) / UPDATES_PER_S
            await asyncio.sleep(max(0.001, next_tick - (time.perf_counter() - started)))
        used, bytes_ = time.process_time() - cpu, self.sent_bytes - sent
        self.exit({"frames": frames, "cpu_s": used, "bytes": bytes_, "wanted": self.seconds * UPDATES_PER_S})

    def update_points(self) -> None:
        """Show one point more than before."""
        self.subject.update(self.x[: self.points], self.y[: self.points])
        self.points += 1


def main() -> None:
    name, points, seconds, result = sys.argv[1:]
    ended = Bench(name, int(points), float(seconds)).run()
    Path(result).write_text(json.dumps(ended))


if __name__ == "__main__":
    main()
