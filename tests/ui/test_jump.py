"""Jump mode: letters on what takes keys, and the focus where one is pressed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from needle_tui.app import NeedleApp
from needle_tui.screens.jump import JumpScreen
from needle_tui.widgets.form_field import ValueInput
from needle_tui.widgets.launch_board import LaunchBoard
from tests.ui.reading import Until, screen_text
from tests.ui.recorded import record_run


@pytest.mark.parametrize("key", ["ctrl+g", "f2"])
@pytest.mark.parametrize("size", [(120, 36), (80, 24), (60, 20)])
async def test_a_letter_goes_to_its_field_even_from_a_text_box(
    cockpit: Callable[..., NeedleApp], until: Until, size: tuple[int, int], key: str
) -> None:
    app = cockpit()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        form = app.screen.query_one(LaunchBoard).form
        form.field_widget("data").query_one(ValueInput).focus()
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, JumpScreen), "the letters")
        jump = app.screen
        assert isinstance(jump, JumpScreen)
        letter, (target, _) = list(jump.targets.items())[3]
        await until(pilot, lambda: f" {letter}" in screen_text(app), "the letter")
        await pilot.press(letter)
        await until(pilot, lambda: app.focused is target, "the focus")


async def test_another_key_leaves_the_focus_where_it_was(
    cockpit: Callable[..., NeedleApp], until: Until
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        before = app.focused
        for key in ("escape", "f9"):
            await pilot.press("ctrl+g")
            await until(pilot, lambda: isinstance(app.screen, JumpScreen), "the letters")
            await pilot.press(key)
            await until(pilot, lambda: not isinstance(app.screen, JumpScreen), "closed")
        assert app.focused is before


async def test_monitor_has_a_letter_for_each_pane(
    cockpit: Callable[..., NeedleApp], until: Until, runs_directory: Path
) -> None:
    run = record_run(runs_directory, "tools")
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "Facts" in screen_text(app), "the run")
        await pilot.press("ctrl+g")
        await until(pilot, lambda: isinstance(app.screen, JumpScreen), "the letters")
        jump = app.screen
        assert isinstance(jump, JumpScreen)
        assert {target.id for target, _ in jump.targets.values()} >= {"loss", "metric", "log", "side"}
