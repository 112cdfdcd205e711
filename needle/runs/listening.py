"""What a trainer reports, as its supervisor hears it: only the newest matters."""

from __future__ import annotations

import contextlib

import msgspec

from needle.runs.cursor import LineCursor
from needle.runs.events import Told, parse_events
from needle.runs.record import UNREADABLE, RunFiles


class _Pulse(msgspec.Struct):
    step: int
    attempt: int = 1
    step_ms: float | str | None = None


class Listener:
    """Follows one attempt: `told`, the last `step` reported (0 before the first) and how long it took."""

    def __init__(self, files: RunFiles, attempt: int) -> None:
        self.told = Told(attempt)
        self.step = 0
        self.step_s = 0.0
        self._attempt = attempt
        self._events = LineCursor(files.events, last_bytes=0)
        self._metrics = LineCursor(files.metrics, last_bytes=0)

    def listen(self) -> None:
        """Take in what is new."""
        more = True
        while more:
            lines = self._events.read()
            self.told = self.told.hear_all(parse_events(lines.block)[0])
            more = lines.more
        more = True
        while more:
            lines = self._metrics.read()
            self._hear_step(lines.block)
            more = lines.more

    def _hear_step(self, block: bytes) -> None:
        for line in reversed(block[-(1 << 16) :].splitlines()):
            with contextlib.suppress(*UNREADABLE):
                pulse = msgspec.json.decode(line, type=_Pulse)
                if pulse.attempt == self._attempt:
                    self.step = max(self.step, pulse.step)
                    self.step_s = pulse.step_ms / 1000 if isinstance(pulse.step_ms, float) else self.step_s
                    return
