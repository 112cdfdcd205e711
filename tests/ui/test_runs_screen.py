"""The Runs screen on real run directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from needle_tui.app import NeedleApp
from needle_tui.context import Context
from needle_tui.screens.confirm import ConfirmDialog
from needle_tui.screens.stop import StopDialog
from needle_tui.widgets.run_table import RunTable
from tests.ui.reading import Until, screen_text
from tests.ui.recorded import record_run


async def test_an_empty_directory_says_how_to_start_a_run(
    cockpit: Callable[..., NeedleApp], until: Until
) -> None:
    app = cockpit("runs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.rows == (), "looking for runs")
        assert "No runs yet." in screen_text(app)
        assert "^s starts one" in screen_text(app)


async def test_runs_are_listed_newest_first_with_their_true_states(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "older", age_s=7200)
    record_run(runs_directory, "alive", phase="running", steps=40, age_s=60)
    app = cockpit("runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        lines = screen_text(app).splitlines()
        assert lines[2].split()[:3] == ["●", "running", "alive"]
        assert lines[3].split()[:3] == ["✓", "finished", "older"]
        assert "● 1" in lines[0]


async def test_a_run_that_grows_changes_its_row_in_place(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "alive", phase="running", steps=40, age_s=60)
    app = cockpit("runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "40/200" in screen_text(app), "the first row")
        record_run(runs_directory, "alive", phase="running", steps=80, age_s=60)
        await until(pilot, lambda: "80/200" in screen_text(app), "the row moving on")


async def test_the_filter_narrows_as_it_is_typed_and_stays_visible(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "good")
    record_run(runs_directory, "bad", phase="failed", reason="the loss was not finite", seed=1)
    app = cockpit("runs")
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        await pilot.press("slash", *"state=failed", "enter")
        await until(pilot, lambda: "good" not in screen_text(app), "the filter")
        text = screen_text(app)
        assert "state=failed" in text
        assert "the loss was not finite" in text
        await pilot.press("escape")
        await until(pilot, lambda: "good" in screen_text(app), "showing all again")


async def test_enter_opens_the_run_in_monitor(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "first", age_s=100)
    record_run(runs_directory, "second", age_s=200, seed=1)
    app = cockpit("runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        await pilot.press("down", "enter")
        await until(pilot, lambda: "second" in screen_text(app).splitlines()[1], "the second run on Monitor")
        assert app.open_name == "monitor"


async def test_removing_asks_says_what_goes_and_removes_only_that(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    gone = record_run(runs_directory, "gone", age_s=100)
    kept = record_run(runs_directory, "kept", age_s=200, seed=1)
    (gone / "artifacts" / "adapter.safetensors").write_bytes(bytes(4096))
    app = cockpit("runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        assert "adapter.safetensors" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, ConfirmDialog), "Enter leaving it")
        assert gone.exists()
        await pilot.press("x", "y")
        await until(pilot, lambda: not gone.exists(), "the removal")
        await until(pilot, lambda: len(app.rows or ()) == 1, "the row going")
        assert kept.exists()


async def test_a_living_run_is_not_removed_but_can_be_asked_to_stop(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    alive = record_run(runs_directory, "alive", phase="running", steps=40, age_s=60)
    app = cockpit("runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        await pilot.press("x")
        await until(pilot, lambda: "stop it first" in screen_text(app), "the refusal")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, StopDialog), "the question")
        await pilot.press("n")
        await until(pilot, lambda: not isinstance(app.screen, StopDialog), "leaving it running")
        assert not (alive / "control" / "stop").exists()


async def test_read_only_refuses_to_change_anything(
    context: Context, runs_directory: Path, until: Until
) -> None:
    import dataclasses

    record_run(runs_directory, "alive", phase="running", steps=40, age_s=60)
    app = NeedleApp(dataclasses.replace(context, read_only=True), start="runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        await pilot.press("s", "x")
        await pilot.pause()
        assert app.open_name == "runs"
        assert not isinstance(app.screen, StopDialog | ConfirmDialog)
        assert "read-only" in screen_text(app).splitlines()[0]


async def test_the_cursor_stays_on_its_run_when_a_newer_one_appears(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "first", age_s=100)
    app = cockpit("runs")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.rows, "listing the runs")
        record_run(runs_directory, "newer", age_s=10, seed=1)
        await until(pilot, lambda: len(app.rows or ()) == 2, "the newer run")
        current = app.screen.query_one(RunTable).current
        assert current is not None
        assert current.name == "first"


async def test_a_run_that_ends_while_another_screen_is_open_is_told(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "alive", phase="running", steps=40, age_s=60)
    app = cockpit("devices")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.live_runs == 1, "finding the living run")
        record_run(runs_directory, "alive", phase="failed", steps=41, age_s=60, reason="the disk is full")
        app.look_at_runs()
        await until(pilot, lambda: "the disk is full" in screen_text(app), "the notice")
        assert "alive: failed" in screen_text(app)


async def test_a_run_of_another_program_cannot_be_edited_and_says_so(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    directory = record_run(runs_directory, "foreign")
    request = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({**request, "task": "somebody-elses"}))
    app = cockpit("runs")
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: "foreign" in screen_text(app), "the run")
        await pilot.press("e")
        await until(pilot, lambda: "unknown task" in screen_text(app), "the reason")
