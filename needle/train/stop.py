"""Stopping a trainer: the first signal asks, the second ends at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
ENDED_AT_ONCE = 130


class StopSignal:
    """Remembers that a signal asked the process to stop."""

    def __init__(self) -> None:
        self.received = ""

    def listen(self, at_once: Callable[[str], None]) -> None:
        """Take over SIGTERM and SIGINT. `at_once` says a last word before a second one ends the process."""

        def handle(number: int, _frame: FrameType | None) -> None:
            name = signal.Signals(number).name
            if self.received:
                at_once(name)
                os._exit(ENDED_AT_ONCE)
            self.received = name

        for number in SIGNALS:
            signal.signal(number, handle)
