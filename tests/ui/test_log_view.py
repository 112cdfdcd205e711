"""The log pane in a running app: keys, search, and what is sent again."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.geometry import Region
from textual.pilot import Pilot

from needle.runs.tail import LogTail
from needle_tui.widgets.log_view import LogView


class Watched(LogView):
    """A log pane that keeps what it asked to have sent again; an entry is None for the whole of it."""

    def __init__(self) -> None:
        super().__init__(glyph_set="braille")
        self.sent: list[Region | None] = []

    def refresh(self, *regions: Region, **options: bool) -> Watched:
        self.sent.extend(regions or [None])
        return super().refresh(*regions, **options)


class LogApp(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [("w", "note('w')", ""), ("q", "note('q')", "")]

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def compose(self) -> ComposeResult:
        yield Watched()

    def action_note(self, key: str) -> None:
        self.noted.append(key)


async def shown(pilot: Pilot[None], log: LogTail) -> Watched:
    """The pane once it has drawn these lines."""
    view = pilot.app.query_one(Watched)
    view.show(log)
    await pilot.pause()
    view.redraw()
    return view


class Log:
    """A real log file and its tail."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "log.txt"
        self.path.touch()
        self.tail = LogTail(self.path)

    def write(self, text: str) -> LogTail:
        with self.path.open("a") as file:
            file.write(text)
        self.tail.poll()
        return self.tail


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = Log(tmp_path)
    made.write("".join(f"step {number} loss {1 / (number + 1):.4f}\n" for number in range(100)))
    return made


async def test_it_follows_a_file_that_grows(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.tail)
        assert view.picture.rows[9].text.startswith("step 99 ")
        await shown(pilot, log.write("step 100 loss 0.1\n"))
        assert view.picture.rows[9].text.startswith("step 100 ")


async def test_a_progress_line_that_is_redrawn_sends_only_its_changed_cells(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.write("epoch 1  10 of 90"))
        await pilot.pause()
        view.sent.clear()
        await shown(pilot, log.write("\repoch 1  11 of 90"))
        assert view.sent == [Region(10, 9, 1, 1)]


async def test_lines_that_come_fast_are_sent_together(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.write("first\n"))
        view.sent.clear()
        started = monotonic()
        for number in range(50):
            view.show(log.write(f"line {number}\n"))
            await pilot.pause()
        redraws = (monotonic() - started) / view.REDRAW_INTERVAL_S + 1
        assert len(view.sent) <= 10 * redraws
        view.redraw()
        assert view.picture.rows[9].text.startswith("line 49 ")


async def test_the_same_lines_send_nothing(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.tail)
        await pilot.pause()
        view.sent.clear()
        await shown(pilot, log.tail)
        assert view.sent == []


async def test_keys_scroll_back_and_end_follows_again(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.tail)
        view.focus()
        await pilot.press("up")
        assert not view.following
        await pilot.press("pageup", "home")
        assert view.picture.rows[0].text.startswith("step 0 ")
        await pilot.press("end")
        assert view.following
        assert view.picture.rows[9].text.startswith("step 99 ")


async def test_a_search_is_typed_without_acting_as_commands(log: Log) -> None:
    app = LogApp()
    async with app.run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.write("what a queue\n"))
        view.focus()
        await pilot.press("slash", *"what", "space", *"a", "space", *"q")
        assert "/what a q_   1 of 1" in view.picture.text()
        await pilot.press("enter", "q")
        assert app.noted == ["q"]
        await pilot.press("escape", "end")
        assert "1 of 1" not in view.picture.text()


async def test_n_goes_round_what_was_found(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.tail)
        view.focus()
        await pilot.press("slash", *"step", "space", *"5", "enter")
        assert "11 of 11" in view.picture.text()
        await pilot.press("n")
        assert "1 of 11" in view.picture.text()
        assert any(row.text.startswith("step 5 ") for row in view.picture.rows)
        await pilot.press("N")
        assert "11 of 11" in view.picture.text()


async def test_w_wraps_a_long_line(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.write("x" * 100 + " end\n"))
        view.focus()
        assert view.picture.rows[9].text.endswith("…")
        await pilot.press("w")
        assert view.picture.rows[9].text.rstrip().endswith("end")


async def test_the_screen_shows_the_picture_after_many_partial_updates(log: Log) -> None:
    async with LogApp().run_test(size=(60, 10)) as pilot:
        view = await shown(pilot, log.tail)
        for number in range(20):
            await shown(pilot, log.write(f"{'漢' * (number % 5)} line {number}\n"))
            await pilot.pause()
        strips = view.screen._compositor.render_strips()
        assert "\n".join(strip.text[:60].rstrip() for strip in strips) == view.picture.text()
