"""The trainer as a child process: its own process group, the planned environment, output to `log.txt`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from needle.errors import RunError
from needle.runs.deaths import Exit
from needle.runs.record import Plan, RunFiles, RunRequest
from needle.runs.writer import ATTEMPT_VARIABLE, BEGAN_VARIABLE, RUN_VARIABLE


class Trainer:
    """A started trainer. Once `reap` tells that it ended, `peak_bytes` is the most it held."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self.peak_bytes = 0
        self._process = process
        self._exit: Exit | None = None

    def reap(self) -> Exit | None:
        """How it ended, said again when asked again; None while it runs."""
        if self._exit is None:
            self._exit = self._reaped()
        return self._exit

    def _reaped(self) -> Exit | None:
        try:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:
            return Exit()
        if pid == 0:
            return None
        # ru_maxrss is in KiB, on macOS in bytes.
        self.peak_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code
        return Exit(signal=-code) if code < 0 else Exit(code=code)

    def signal(self, number: int) -> None:
        """Send a signal to its process group."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, number)


def start_trainer(
    directory: Path, request: RunRequest, attempt: int, environment: Mapping[str, str]
) -> Trainer:
    """Start the planned command where the run was asked for. Raises RunError with what is missing."""
    files = RunFiles(directory)
    command = files.command_of(request.plan)
    if not command:
        raise RunError("the plan has no command to start", where="run.json")
    try:
        with open(files.log, "ab", buffering=0) as log:
            if attempt > 1:
                log.write(_attempt_line(log.name, attempt))
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=_working_directory(files, request),
                process_group=0,
            )
    except (OSError, ValueError) as error:
        raise _cannot_start(command[0], directory, error) from None
    return Trainer(process)


def trainer_environment(
    inherited: Mapping[str, str], plan: Plan, directory: Path, attempt: int
) -> dict[str, str]:
    """The inherited environment with the planned changes, and what the trainer needs to report."""
    environment = dict(inherited)
    for variable in plan.environment:
        if variable.value is None:
            environment.pop(variable.name, None)
        else:
            environment[variable.name] = variable.value
    environment[RUN_VARIABLE] = str(directory)
    environment[ATTEMPT_VARIABLE] = str(attempt)
    environment[BEGAN_VARIABLE] = repr(time.monotonic())
    return environment


def _working_directory(files: RunFiles, request: RunRequest) -> Path | None:
    """Where the run was asked for, when that is still there; else where this process is."""
    if not request.working_directory:
        return None
    folder = files.located(request.working_directory)
    return folder if folder.is_dir() else None


def _attempt_line(log: str, attempt: int) -> bytes:
    """One marked line between the outputs of two attempts, on a line of its own."""
    with open(log, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        unfinished = size > 0 and file.read(1) != b"\n"
    line = f"=== needle: attempt {attempt}, {time.strftime('%Y-%m-%d %H:%M:%S')} ===\n"
    return (b"\n" if unfinished else b"") + line.encode()


def _cannot_start(program: str, directory: Path, error: OSError | ValueError) -> RunError:
    what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    where = error.filename if isinstance(error, OSError) and error.filename else program
    if isinstance(error, FileNotFoundError) and str(where) == program:
        return RunError(
            f"the trainer's program is not there: {program}",
            remedy="was its environment moved or deleted? plan the run anew",
        )
    return RunError(f"the trainer cannot be started: {where}: {what}", where=directory.name)
