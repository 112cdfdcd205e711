"""From a plan to a detached child: under a second, and nothing of ours stays attached to it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec

from needle.config import RunSettings
from needle.errors import InputError, RunError
from needle.runs.index import create_run
from needle.runs.record import ENDED_PHASES, Plan, read_request, read_state

_START_LIMIT_S = 20.0


def start_run(task: str, settings: RunSettings, plan: Plan, runs_directory: Path) -> Path:
    """Make the run directory and start its supervisor. Returns the directory once the supervisor has it."""
    recorded = msgspec.structs.replace(plan, versions={})
    directory = create_run(task, settings, recorded, runs_directory, versions=plan.versions)
    _start_supervisor(directory, attempt_before=0)
    return directory


def resume_run(directory: Path) -> None:
    """Start a new attempt of an ended run. Raises InputError while the run still lives."""
    read_request(directory)
    state = read_state(directory)
    if state is not None and state.phase not in ENDED_PHASES:
        from needle.runs.state import observe_directory

        status = observe_directory(directory)
        if status.phase not in ENDED_PHASES:
            raise InputError(f"is still {status.phase}", where=directory.name, remedy="stop it first")
    _start_supervisor(directory, attempt_before=state.attempt if state else 0)


def _start_supervisor(directory: Path, *, attempt_before: int) -> None:
    """Start the supervisor in its own session, so that no closing terminal reaches it."""
    with (directory / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "needle.runs.supervisor", str(directory.absolute())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            close_fds=True,
        )
    _wait_for_attempt(directory, process, attempt_before)


def _wait_for_attempt(directory: Path, process: subprocess.Popen[bytes], attempt_before: int) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline:
        state = read_state(directory)
        if state is not None and state.attempt > attempt_before:
            return
        if process.poll() is not None:
            raise RunError(
                f"the supervisor ended with status {process.returncode} before the run began",
                where=directory.name,
                remedy=f"its words are in {directory / 'log.txt'}",
            )
        time.sleep(0.01)
    raise RunError("the supervisor did not take the run", where=directory.name, remedy="is the disk full?")
