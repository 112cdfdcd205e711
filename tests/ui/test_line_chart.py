"""The chart in a running app: what it sends again, and what its keys do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from time import monotonic

import numpy as np
import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from needle_tui.widgets.line_chart import LineChart


class Watched(LineChart):
    """A chart that keeps what it asked to have sent again; an entry is None for the whole of it."""

    def __init__(self) -> None:
        super().__init__("loss", glyph_set="braille")
        self.sent: list[Region | None] = []

    def refresh(self, *regions: Region, **options: bool) -> Watched:
        self.sent.extend(regions or [None])
        return super().refresh(*regions, **options)


class ChartApp(App[None]):
    CSS = "LineChart { width: 80; height: 20; }"

    def compose(self) -> ComposeResult:
        yield Watched()


def chart_of(pilot: Pilot[None]) -> Watched:
    return pilot.app.query_one(Watched)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Let the app work until `holds`, two seconds at most."""
    deadline = monotonic() + 2
    while not holds():
        assert monotonic() < deadline, "nothing happened"
        await pilot.pause(0.01)


async def shown(pilot: Pilot[None], points: int = 100) -> Watched:
    """A focused chart that shows `points` points of a falling line."""
    chart = chart_of(pilot)
    steps = np.arange(points)
    chart.set_series("train", steps, 2.0 - steps / points, generation=1)
    await until(pilot, lambda: "train" in chart.picture.text())
    chart.focus()
    await pilot.pause()
    chart.sent.clear()
    return chart


async def test_a_new_point_sends_a_few_cells_and_never_the_whole_chart() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot, 90)
        chart.append("train", 90, 1.1)
        await until(pilot, lambda: bool(chart.sent))
        assert None not in chart.sent
        assert sum(region.area for region in chart.sent if region) < 80


async def test_points_already_shown_send_nothing() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot)
        steps = np.arange(100)
        chart.set_series("train", steps, 2.0 - steps / 100, generation=1)
        chart.set_series("train", steps, 2.0 - steps / 100)
        await pilot.pause(0.3)
        assert chart.sent == []


async def test_a_burst_of_points_is_drawn_once() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot)
        drawn: list[int] = []
        draw = chart._model.draw
        chart._model.draw = lambda width, height: drawn.append(1) or draw(width, height)  # type: ignore[method-assign,func-returns-value]
        for step in range(100, 400):
            chart.append("train", step, 1.0)
        await until(pilot, lambda: bool(chart.sent))
        assert len(drawn) == 1


async def test_what_is_on_the_screen_is_the_picture_after_many_partial_updates() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot)
        random = np.random.default_rng(0)
        for step in range(100, 160):
            chart.append("train", step, random.normal())
            chart.redraw()
            await pilot.pause()
        strips = chart.screen._compositor.render_strips()
        assert "\n".join(strip.text[:80].rstrip() for strip in strips) == chart.picture.text()


@pytest.mark.parametrize("key", ["plus", "minus", "left", "right", "l", "s", "0", "comma", "full_stop"])
async def test_every_key_leaves_a_whole_picture(key: str) -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot)
        await pilot.press(key, key)
        await pilot.pause()
        assert len(chart.picture.rows) == 20
        assert "train" in chart.picture.text()


async def test_zoom_pan_and_reset_move_the_window() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot)
        whole = chart.window
        await pilot.press("plus", "plus")
        low, high = chart.window
        assert high - low == pytest.approx((whole[1] - whole[0]) / 4)
        assert high == whole[1], "zooming without a cursor stays at the newest point"
        await pilot.press("comma")
        assert chart.window[0] == pytest.approx(low - (high - low) / 2)
        await pilot.press("0")
        assert chart.window == whole


async def test_the_cursor_reads_the_values_of_a_point_and_moves_from_point_to_point() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot, 20)
        await pilot.press("left")
        assert chart.readings() == {"train": (19.0, pytest.approx(1.05))}
        await pilot.press("left")
        assert chart.readings() == {"train": (18.0, pytest.approx(1.10))}
        await pilot.pause()
        assert "@18" in chart.picture.text()
        await pilot.press("escape")
        assert chart.cursor is None


async def test_a_size_change_draws_the_whole_picture_at_the_new_size() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = await shown(pilot)
        chart.styles.width, chart.styles.height = 50, 12
        await until(pilot, lambda: chart.picture.width == 50)
        assert len(chart.picture.rows) == 12


async def test_markup_and_control_characters_in_names_are_shown_and_do_nothing() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = chart_of(pilot)
        chart.title = "[red]loss\x1b[2J"
        chart.set_series("[b]a\x07", [1, 2], [1.0, 2.0])
        await until(pilot, lambda: "[b]a" in chart.picture.text())
        assert "[red]loss" in chart.picture.text()
        assert "\x1b" not in chart.picture.text()
        assert "\x07" not in chart.picture.text()


async def test_growth_with_a_generation_reads_only_the_new_points() -> None:
    async with ChartApp().run_test(size=(80, 20)) as pilot:
        chart = chart_of(pilot)
        values = np.arange(10.0)
        chart.set_series("train", values[:5], values[:5], generation=3)
        grown = values.copy()
        grown[0] = 99.0
        chart.set_series("train", values, grown, generation=3)
        chart.cursor = 0.0
        assert chart.readings()["train"] == (0.0, 0.0)
        chart.set_series("train", values, grown, generation=4)
        assert chart.readings()["train"] == (0.0, 99.0)


def test_a_chart_without_points_does_not_import_numpy() -> None:
    program = (
        "import asyncio, sys\n"
        "from textual.app import App\n"
        "from needle_tui.widgets.line_chart import LineChart\n"
        "class One(App):\n"
        "    def compose(self): yield LineChart('loss')\n"
        "async def main():\n"
        "    app = One()\n"
        "    async with app.run_test() as pilot:\n"
        "        await pilot.pause()\n"
        "        assert 'no points yet' in app.query_one(LineChart).picture.text()\n"
        "asyncio.run(main())\n"
        "print('numpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr
