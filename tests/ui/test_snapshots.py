"""Pictures of the screens at the two sizes that matter, on recorded runs. Look before `--snapshot-update`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from needle_tui.app import NeedleApp
from needle_tui.widgets.launch_board import LaunchBoard
from tests.ui.reading import Until, screen_text
from tests.ui.recorded import record_run

SIZES = [(120, 36), (80, 24)]
Snap = Callable[..., bool]


@pytest.fixture(autouse=True)
def still_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths that the plan shows must not depend on the test's own folders."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/ada/.cache")


@pytest.mark.parametrize("size", SIZES)
def test_launch(
    snap_compare: Snap, cockpit: Callable[..., NeedleApp], until: Until, size: tuple[int, int]
) -> None:
    async def planned(pilot: Pilot[int]) -> None:
        app = pilot.app
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        board = app.screen.query_one(LaunchBoard)
        await until(pilot, lambda: board.outcome.can_start and not board.is_looking, "a plan that can start")

    assert snap_compare(cockpit(), terminal_size=size, run_before=planned)


@pytest.mark.parametrize("size", SIZES)
def test_launch_with_mistakes(
    snap_compare: Snap, cockpit: Callable[..., NeedleApp], until: Until, size: tuple[int, int]
) -> None:
    async def mistaken(pilot: Pilot[int]) -> None:
        app = pilot.app
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        board = app.screen.query_one(LaunchBoard)
        board.form.field_widget("data").set_value("/home/ada/tols.jsonl")
        board.form.field_widget("batch_size").set_value("0")
        await until(pilot, lambda: "data" in board.outcome.problems and not board.is_looking, "the problems")

    assert snap_compare(cockpit(), terminal_size=size, run_before=mistaken)


@pytest.mark.parametrize("size", [*SIZES, (60, 20)])
def test_monitor_of_a_living_run(
    snap_compare: Snap,
    cockpit: Callable[..., NeedleApp],
    runs_directory: Path,
    until: Until,
    size: tuple[int, int],
) -> None:
    run = record_run(runs_directory, "tools", phase="running", steps=128, age_s=31)
    app = cockpit("monitor", run)
    assert snap_compare(app, terminal_size=size, run_before=_shown(app, until, "epoch 6 done", "● 1"))


@pytest.mark.parametrize("size", SIZES)
def test_monitor_of_a_failed_run(
    snap_compare: Snap,
    cockpit: Callable[..., NeedleApp],
    runs_directory: Path,
    until: Until,
    size: tuple[int, int],
) -> None:
    reason = "the loss was not finite for 10 steps in a row: lower --lr, or look at the data near step 58"
    run = record_run(runs_directory, "too-fast", phase="failed", steps=61, reason=reason, nonfinite_at=58)
    app = cockpit("monitor", run)
    assert snap_compare(app, terminal_size=size, run_before=_shown(app, until, "epoch 3 done", "lower --lr"))


@pytest.mark.parametrize("size", SIZES)
def test_runs(
    snap_compare: Snap,
    cockpit: Callable[..., NeedleApp],
    runs_directory: Path,
    until: Until,
    size: tuple[int, int],
) -> None:
    record_run(runs_directory, "tools-rank-32", phase="running", steps=128, age_s=31, seed=5)
    record_run(runs_directory, "tools-rank-16", seed=4)
    record_run(runs_directory, "too-fast", phase="failed", steps=61, reason="not finite", seed=3, age_s=9000)
    record_run(runs_directory, "big-batch", phase="killed", steps=90, reason="signal 9", seed=2, age_s=90_000)
    record_run(runs_directory, "first-try", phase="stopped", steps=40, seed=1, age_s=300_000)
    app = cockpit("runs")
    assert snap_compare(app, terminal_size=size, run_before=_shown(app, until, "first-try", "● 1"))


@pytest.mark.parametrize("size", SIZES)
def test_devices(
    snap_compare: Snap, cockpit: Callable[..., NeedleApp], until: Until, size: tuple[int, int]
) -> None:
    app = cockpit("devices")
    assert snap_compare(app, terminal_size=size, run_before=_shown(app, until, "libtpu", "r probes again"))


def _shown(app: NeedleApp, until: Until, *words: str) -> Callable[[Pilot[int]], Awaitable[None]]:
    """Waits until all these words are on the screen."""

    async def wait(pilot: Pilot[int]) -> None:
        for word in words:
            await until(pilot, lambda word=word: word in screen_text(app), word)

    return wait
