"""Monitor on runs that really run: a supervisor, and a trainer that counts instead of loading JAX."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from needle.config import FinetuneSettings
from needle.launch.start import start_run
from needle.runs.record import read_state
from needle_tui.app import NeedleApp
from needle_tui.context import Context
from needle_tui.screens.monitor import MonitorScreen
from tests.ui.reading import Until, screen_text
from tests.ui.recorded import plan

COUNTER = """
import os, sys, time
from needle.runs.writer import RunWriter

run = RunWriter(sys.argv[1], attempt=int(os.environ["NEEDLE_ATTEMPT"]))
run.event("phase", phase="running", total=100000)
print("counting", flush=True)
step = 0
while not run.stop_requested():
    step += 1
    run.report(step, loss=3 / step, step_ms=20.0, tokens=step * 100, tokens_per_s=5000.0)
    time.sleep(0.02)
run.event("end", outcome="stopped", reason=f"stopped on request after step {step}")
"""


@pytest.fixture
def living(runs_directory: Path) -> Iterator[Path]:
    """A run that counts until it is stopped; nothing of it is left afterwards."""
    counting = msgspec.structs.replace(plan(100_000), command=(sys.executable, "-c", COUNTER, "{run}"))
    directory = start_run(
        "finetune", FinetuneSettings(name="counter", data="sample"), counting, runs_directory
    )
    yield directory
    for pid in _pids(directory):
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def watching(context: Context) -> Callable[[Path], NeedleApp]:
    """A cockpit with a real clock on one run."""

    def watch(run: Path) -> NeedleApp:
        return NeedleApp(dataclasses.replace(context, now=time.time), start="monitor", run=run)

    return watch


async def test_points_move_and_stop_ends_the_run(
    watching: Callable[[Path], NeedleApp], living: Path, until: Until
) -> None:
    app = watching(living)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "● running" in screen_text(app), "the run")
        await until(pilot, lambda: "counting" in screen_text(app), "its log")
        await pilot.press("s")
        await until(pilot, lambda: "Stop counter?" in screen_text(app), "the question")
        await pilot.press("y")
        await until(pilot, lambda: "stopped on request after step" in screen_text(app), "the end")
        await pilot.press("enter")
        await until(pilot, lambda: "◼ stopped" in screen_text(app).splitlines()[1], "the header")


async def test_a_killed_trainer_shows_killed_with_the_signal_within_five_seconds(
    watching: Callable[[Path], NeedleApp], living: Path, until: Until
) -> None:
    app = watching(living)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "● running" in screen_text(app), "the run")
        state = read_state(living)
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        await until(pilot, lambda: "✗ killed" in screen_text(app), "the death", within_s=5)
        assert "SIGKILL" in screen_text(app)


async def test_killing_supervisor_and_trainer_shows_lost_not_running(
    watching: Callable[[Path], NeedleApp], living: Path, until: Until
) -> None:
    app = watching(living)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "● running" in screen_text(app), "the run")
        supervisor, trainer = _pids(living)
        os.kill(supervisor, signal.SIGKILL)
        os.kill(trainer, signal.SIGKILL)
        await until(pilot, lambda: "? lost" in screen_text(app), "the loss", within_s=5)


async def test_an_ended_run_can_be_resumed(
    watching: Callable[[Path], NeedleApp], living: Path, until: Until
) -> None:
    app = watching(living)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "● running" in screen_text(app), "the run")
        state = read_state(living)
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        await until(pilot, lambda: "r Resume" in screen_text(app), "the offer to resume")
        await pilot.press("r")
        await until(pilot, lambda: "attempt 2" in screen_text(app), "the second attempt")
        await until(pilot, lambda: "● running" in screen_text(app), "it running")


async def test_another_cockpit_shows_the_whole_history(
    watching: Callable[[Path], NeedleApp], living: Path, until: Until
) -> None:
    first = watching(living)
    async with first.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "● running" in screen_text(first), "the run")
    second = watching(living)
    async with second.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "● running" in screen_text(second), "the run, still")
        screen = second.screen
        assert isinstance(screen, MonitorScreen)
        await until(pilot, lambda: screen.moment and len(screen.moment.series["loss"]) > 1, "its numbers")
        assert screen.moment is not None
        assert screen.moment.series["loss"].steps[0] == 1


def _pids(directory: Path) -> tuple[int, ...]:
    state = read_state(directory)
    return (state.supervisor_pid, state.pid) if state is not None else ()
