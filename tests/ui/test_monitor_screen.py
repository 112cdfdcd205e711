"""The Monitor screen on real run directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from needle_tui.app import NeedleApp
from needle_tui.screens.monitor import MonitorScreen
from needle_tui.screens.reasons import ReasonsScreen
from tests.ui.reading import Until, screen_text
from tests.ui.recorded import record_run


def monitor(app: NeedleApp) -> MonitorScreen:
    """The screen, by its own type."""
    assert isinstance(app.screen, MonitorScreen)
    return app.screen


async def test_the_header_says_state_progress_and_time(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools", phase="running", steps=128, age_s=31)
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "step 128 of 200" in screen_text(app), "the header")
        header = screen_text(app).splitlines()[1]
        assert header.split()[:2] == ["●", "running"]
        assert "64%" in header
        assert "elapsed     30s" in header
        assert "left     14s" in header


async def test_everything_needed_is_seen_on_eighty_by_twenty_four(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools", phase="running", steps=128, age_s=31)
    app = cockpit("monitor", run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "epoch 6 done" in screen_text(app), "the log")
        text = screen_text(app)
        for words in (
            "running",
            "step 128 of 200",
            "Loss",
            "Step time",
            "cuda:0",
            "cudnn",
            "tokens",
            "s Stop",
        ):
            assert words in text, words


async def test_a_dead_run_says_why_in_words(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    reason = "killed by signal 9 (SIGKILL)"
    run = record_run(runs_directory, "tools", phase="killed", steps=61, reason=reason)
    app = cockpit("monitor", run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: reason in screen_text(app), "the reason")
        assert "✗ killed" in screen_text(app)
        assert "r Resume" in screen_text(app)
        assert "s Stop" not in screen_text(app)


async def test_points_that_arrive_are_drawn(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools", phase="running", steps=20, age_s=31)
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: monitor(app).loss_chart.readings(), "the first points")
        with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": 21, "time": 9.0, "attempt": 1, "loss": 0.125}) + "\n")
        await until(
            pilot, lambda: monitor(app).loss_chart.readings().get("loss") == (21.0, 0.125), "the new point"
        )


async def test_a_step_that_was_not_finite_breaks_nothing(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools", phase="failed", steps=61, nonfinite_at=60, reason="not finite")
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "step  61 of 200" in screen_text(app), "the run")
        moment = monitor(app).moment
        assert moment is not None
        assert moment.loss.best is not None


async def test_keys_change_metric_axis_smoothing_and_scale(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools")
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "Step time, ms" in screen_text(app), "the charts")
        await pilot.press("m")
        await until(pilot, lambda: "data_ms" in screen_text(app), "the next metric")
        await pilot.press("x")
        await until(pilot, lambda: " time" in screen_text(app), "time along the bottom")
        await pilot.press("plus", "l")
        await pilot.pause()
        assert monitor(app).loss_chart.smoothing == 0.6
        assert monitor(app).loss_chart.log_scale
        await pilot.press("minus")
        assert monitor(app).loss_chart.smoothing == 0.0


async def test_a_checkpoint_can_be_asked_for(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools", phase="running", steps=20, age_s=31)
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "running" in screen_text(app), "the run")
        await pilot.press("c")
        await until(pilot, lambda: (run / "control" / "checkpoint").exists(), "the request")


async def test_stopping_is_asked_twice_and_shows_its_stages(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools", phase="running", steps=20, age_s=31)
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "running" in screen_text(app), "the run")
        await pilot.press("s", "s")
        await until(pilot, lambda: "Stop tools?" in screen_text(app), "the question")
        assert not (run / "control" / "stop").exists()
        event = {
            "time": 9.0,
            "attempt": 1,
            "at": 0,
            "kind": "stop",
            "stage": "term",
            "message": "TERM was sent",
        }
        with (run / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
        await until(pilot, lambda: "TERM was sent" in screen_text(app), "the stage")


async def test_the_newest_run_opens_when_none_was_named(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    record_run(runs_directory, "older", age_s=7200)
    record_run(runs_directory, "newer", age_s=3600, seed=1)
    app = cockpit("monitor")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "newer" in screen_text(app), "the newest run")


async def test_without_any_run_it_says_what_to_do(cockpit: Callable[..., NeedleApp], until: Until) -> None:
    app = cockpit("monitor")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "No run is open." in screen_text(app), "the words")
        assert "1 starts one" in screen_text(app)


async def test_hostile_names_and_log_lines_are_shown_inert(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools", phase="failed", steps=20, reason="[red]\x1b[31m boom [/red]")
    (run / "log.txt").write_text("[bold]\x1b]0;title\x07 plain\n", encoding="utf-8")
    app = cockpit("monitor", run)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "boom" in screen_text(app), "the reason")
        text = screen_text(app)
        assert "\x1b" not in text
        assert "[red]" in text
        assert "[bold]" in text


async def test_the_plan_of_a_run_is_given_in_full(
    cockpit: Callable[..., NeedleApp], runs_directory: Path, until: Until
) -> None:
    run = record_run(runs_directory, "tools")
    app = cockpit("monitor", run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "finished" in screen_text(app), "the run")
        await pilot.press("f3")
        await until(pilot, lambda: isinstance(app.screen, ReasonsScreen), "the reasons")
        await until(pilot, lambda: "packed segments: the" in screen_text(app), "the reason in full")
