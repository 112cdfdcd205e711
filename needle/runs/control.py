"""Requests to a run: a file, which works from another machine too, and a signal when the run is here."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from needle.errors import InputError
from needle.runs.liveness import alive
from needle.runs.record import RunFiles, RunState, read_state, write_atomically
from needle.runs.state import observe_directory

STOP = b"stop"
NOW = b"now"


def request_stop(directory: Path | str, now: bool = False) -> bool:
    """Ask a run to finish its step, save and stop; `now` goes one step further at once: TERM, then KILL.

    Returns False when the run has ended already. Raises InputError when the request cannot be written.
    """
    if observe_directory(directory).ended:
        return False
    files = RunFiles(directory)
    asked_before = _content(files.stop_request).startswith(NOW)
    # The time makes every request a new content: that is how the supervisor tells a second from the first.
    _write(files.stop_request, b"%s %.6f\n" % (NOW if now else STOP, time.time()))
    state = read_state(directory)
    if state and not _wake_supervisor(state) and now:
        _end_unsupervised(state, signal.SIGKILL if asked_before else signal.SIGTERM)
    return True


def request_checkpoint(directory: Path | str) -> bool:
    """Ask a run to save a checkpoint at its next step and go on. Returns False when it has ended."""
    if observe_directory(directory).ended:
        return False
    _write(RunFiles(directory).checkpoint_request, b"%.6f\n" % time.time())
    return True


def clear_requests(directory: Path | str) -> None:
    """Forget what was asked of an earlier attempt."""
    files = RunFiles(directory)
    for path in (files.stop_request, files.checkpoint_request):
        with contextlib.suppress(OSError):
            path.unlink()


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content, durable=False)
    except OSError as error:
        raise InputError(
            f"cannot leave a request: {error.strerror}",
            where=str(path.parent),
            remedy="ask whoever owns the run directory to stop it",
        ) from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _wake_supervisor(state: RunState) -> bool:
    """Make the supervisor look at once; without the signal it looks within half a second."""
    if not alive(state.supervisor_pid, state.supervisor_started, state.boot_id, state.host):
        return False
    with contextlib.suppress(OSError):
        os.kill(state.supervisor_pid, signal.SIGUSR1)
    return True


def _end_unsupervised(state: RunState, number: signal.Signals) -> None:
    if alive(state.pid, state.pid_started, state.boot_id, state.host):
        with contextlib.suppress(OSError):
            os.killpg(state.pid, number)
