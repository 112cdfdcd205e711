"""Writing `state.json`, of which the supervisor is the only writer."""

from __future__ import annotations

import contextlib
import time

import msgspec

from needle.runs.record import RunFiles, RunState, write_json

HEARTBEAT_S = 2.0
_LAST_SAVE_S = 30.0


class StateFile:
    """Saves on change and as a heartbeat; a full disk delays a save and never raises."""

    def __init__(self, files: RunFiles) -> None:
        self._path = files.state
        self._saved: RunState | None = None
        self._saved_at = -HEARTBEAT_S

    def save(self, state: RunState) -> bool:
        """Write the state if it changed or the last heartbeat is old. Returns whether the file is current.

        What a crash of the machine must not undo is forced to the disk; steps and heartbeats are not.
        """
        before, now = self._saved, time.monotonic()
        if before == state and now - self._saved_at < HEARTBEAT_S:
            return True
        weighty = before is None or (before.phase, before.stop_stage) != (state.phase, state.stop_stage)
        try:
            write_json(self._path, _beating(state), durable=weighty)
        except OSError:
            return False
        self._saved, self._saved_at = state, now
        return True

    def save_last(self, state: RunState) -> None:
        """Write the final state, over the old one in place when the disk has no room for a second file."""
        deadline = time.monotonic() + _LAST_SAVE_S
        while not self.save(state) and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                content = msgspec.json.encode(state)
                with open(self._path, "r+b", buffering=0) as file:
                    if file.write(content) == len(content):
                        file.truncate()
                        return
            time.sleep(0.5)


def _beating(state: RunState) -> RunState:
    return msgspec.structs.replace(state, heartbeat_at=round(time.time(), 3))
