"""What lets a supervisor outlive terminals, and be the only one of its run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from needle.runs.liveness import alive
from needle.runs.record import RunFiles, read_state

WAKING_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)


def detach() -> int:
    """Leave the terminal's reach. Returns a descriptor that gets one byte for each signal that arrives."""
    with contextlib.suppress(OSError):
        os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in WAKING_SIGNALS:
        signal.signal(number, lambda *_: None)
    return wake


@contextlib.contextmanager
def sole_supervisor(directory: Path) -> Iterator[bool]:
    """Hold the run's lock. Gives False when another supervisor has it, or a trainer of it still lives."""
    files = RunFiles(directory)
    with contextlib.ExitStack() as held:
        try:
            files.control.mkdir(exist_ok=True)
            lock = held.enter_context(open(files.control / "supervisor.lock", "wb"))
        except OSError:
            # A disk that takes no lock file: go on, so that the state at least says what went wrong.
            yield True
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # a file system without locks
        state = read_state(directory)
        living = state is not None and alive(state.pid, state.pid_started, state.boot_id, state.host)
        yield not living
