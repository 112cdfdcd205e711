"""What a trainer uses to report: one line a step, one line an event, each one write to the file's end.

A line is handed to the system as a whole, so that a reader, a second writer or a crash never leaves half
of it before another line.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from needle.runs.record import RunFiles, json_number

RUN_VARIABLE = "NEEDLE_RUN"
ATTEMPT_VARIABLE = "NEEDLE_ATTEMPT"
BEGAN_VARIABLE = "NEEDLE_BEGAN"
_LOOK_EVERY_S = 0.1


class RunWriter:
    """Appends to one run directory. `time` in its lines counts from the attempt's beginning.

    A disk that is full costs lines, never the training: the first failure is told on stderr.
    """

    def __init__(self, directory: Path | str, attempt: int = 1) -> None:
        self.files = RunFiles(directory)
        self.attempt = attempt
        self._began = _attempt_began()
        self._metrics = _Appender(self.files.metrics)
        self._events = _Appender(self.files.events)
        self._encode = msgspec.json.Encoder(enc_hook=_plain).encode
        self._looked_at = -1.0
        self._stop = False

    @property
    def time(self) -> float:
        """Seconds since the attempt began, from a monotonic clock."""
        return round(time.monotonic() - self._began, 6)

    def report(self, step: int, **metrics: float | None) -> None:
        """Append one metrics line. Anything `float()` takes is a value; None is left out."""
        line: dict[str, object] = {"step": int(step), "time": self.time, "attempt": self.attempt}
        for name, value in metrics.items():
            # The line's own fields are what readers order points by: no metric may take their name.
            if value is not None and name not in line:
                line[name] = value if type(value) is int else json_number(float(value))
        self._metrics.append(self._encode(line))

    def event(self, kind: str, **fields: object) -> None:
        """Append one event line; the kinds and their fields are in docs/run-directory.md."""
        line = {"time": self.time, "attempt": self.attempt, "at": round(time.time(), 3), "kind": kind}
        self._events.append(
            self._encode({**line, **{name: _finite(value) for name, value in fields.items()}})
        )

    def stop_requested(self) -> bool:
        """Whether someone asked the run to stop. Cheap enough to ask every step."""
        now = time.monotonic()
        if not self._stop and now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = now
            self._stop = self.files.stop_request.exists()
        return self._stop

    def checkpoint_requested(self) -> bool:
        """Whether someone asked for a checkpoint; true once for each request."""
        try:
            self.files.checkpoint_request.unlink()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let go of the files."""
        self._metrics.close()
        self._events.close()


_own: RunWriter | None = None


def report(step: int, **metrics: float | None) -> None:
    """Report metrics of one step to the run this process belongs to; does nothing outside a run."""
    global _own
    if _own is None:
        directory = os.environ.get(RUN_VARIABLE)
        if not directory or not os.path.isdir(directory):
            return
        _own = RunWriter(directory, attempt_of_environment())
    _own.report(step, **metrics)


def attempt_of_environment() -> int:
    """The number of the attempt this process belongs to, as its supervisor said; 1 outside a run."""
    text = os.environ.get(ATTEMPT_VARIABLE, "1")
    return int(text) if text.isdecimal() else 1


class _Appender:
    """One file opened for appending, opened at the first line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._torn = False
        self._complained = False

    def append(self, line: bytes) -> None:
        try:
            if self._descriptor < 0:
                self._open()
            content = b"\n" + line + b"\n" if self._torn else line + b"\n"
            self._torn = os.write(self._descriptor, content) < len(content)
        except OSError as error:
            if not self._complained:
                print(f"needle: {self._path}: {error.strerror}; lines are being lost", file=sys.stderr)
            self._complained = True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        size = os.fstat(self._descriptor).st_size
        # What a killed attempt left half-written must not swallow this attempt's first line.
        self._torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"


def _attempt_began() -> float:
    """The supervisor's monotonic clock when it started this process, else now."""
    now = time.monotonic()
    try:
        began = float(os.environ.get(BEGAN_VARIABLE, now))
    except ValueError:
        return now
    return began if 0 <= now - began < 1e9 else now


def _finite(value: object) -> object:
    return json_number(value) if isinstance(value, float) else value


def _plain(value: object) -> object:
    """Numbers of other libraries (numpy, JAX) as numbers, anything else as its text."""
    try:
        return json_number(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)
