"""Reading a run, whole or as it grows. Reading never fails for what a file holds."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import msgspec

from needle.runs.cursor import LineCursor, Lines
from needle.runs.events import Event, Told, parse_events
from needle.runs.metric_lines import MetricDecoder
from needle.runs.metrics import MetricTable
from needle.runs.record import (
    UNREADABLE,
    RunFiles,
    RunRequest,
    RunState,
    SystemSample,
    read_request,
    read_state,
)
from needle.runs.state import Progress, Status, liveness_of, observe

_SLICE_BYTES = 1 << 18
_SYSTEM_SAMPLES_KEPT = 10_000
_SYSTEM_BYTES_READ = 4 << 20


@dataclass(frozen=True)
class Changes:
    """What a poll found new; false when nothing is. `more` says that it stopped at its limit."""

    metrics: bool = False
    state: bool = False
    events: bool = False
    system: bool = False
    more: bool = False

    def __bool__(self) -> bool:
        return self.metrics or self.state or self.events or self.system


class RunReader:
    """One run: `request`, `state`, `metrics`, `events` and `system`, as of the last `poll`.

    Raises InputError for a directory without a readable `run.json`. Of `system` the last ten thousand
    samples (five and a half hours) are kept.
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.files = RunFiles(directory)
        self.request: RunRequest = read_request(directory)
        self.state: RunState | None = None
        self.metrics = MetricTable()
        self.events: list[Event] = []
        self.system: deque[SystemSample] = deque(maxlen=_SYSTEM_SAMPLES_KEPT)
        self.told = Told()
        self._garbage_lines = 0
        self._decoder = MetricDecoder()
        self._metric_lines = LineCursor(self.files.metrics)
        self._event_lines = LineCursor(self.files.events)
        self._system_lines = LineCursor(self.files.system, last_bytes=_SYSTEM_BYTES_READ)
        self._sample_decoder = msgspec.json.Decoder(SystemSample)
        self._state_seen: tuple[int, int, int] | None = None

    @property
    def garbage_lines(self) -> int:
        """Lines of any file that could not be read; the lines around them were."""
        return self._garbage_lines + self._decoder.garbage_lines

    @property
    def step(self) -> int:
        """The last step of the newest attempt."""
        state = self.state
        if state is not None and (state.attempt > self.metrics.attempt or not len(self.metrics)):
            return state.step
        return self.metrics.last_step

    @property
    def total(self) -> int:
        """The steps the run is to make; 0 when unknown."""
        recorded = self.state.total if self.state else 0
        return self.told.total or recorded or self.request.plan.total_steps

    def poll(self, max_bytes: int | None = None) -> Changes:
        """Read what is new, of the metrics about `max_bytes` at most."""
        # State first: when it says that the run ended, everything the run wrote is there to be read.
        state = self._poll_state()
        events, system = self._poll_events(), self._poll_system()
        metrics, more = self._poll_metrics(max_bytes)
        return Changes(metrics, state, events, system, more)

    def read_all(self) -> RunReader:
        """Read everything there is now."""
        self.poll()
        return self

    def status(self, now: float | None = None) -> Status:
        """How the run really is, by what was read and by which of its processes live now."""
        return observe(
            self.state,
            liveness_of(self.state),
            self.told,
            Progress(self._metric_lines.cursor.modified_at, self._step_s()),
            created_at=self.request.created_at,
            now=time.time() if now is None else now,
        )

    def refreshed_status(self) -> Status:
        """The status after reading state and events; the metrics are left for the next poll."""
        self._poll_state()
        self._poll_events()
        return self.status()

    def _poll_state(self) -> bool:
        try:
            found = self.files.state.stat()
        except OSError:
            return False
        seen = (found.st_ino, found.st_size, found.st_mtime_ns)
        if seen == self._state_seen:
            return False
        state = read_state(self.directory)
        if state is None:
            return False
        self._state_seen = seen
        before, self.state = self.state, state
        return before is None or _without_heartbeat(before) != _without_heartbeat(state)

    def _poll_metrics(self, max_bytes: int | None) -> tuple[bool, bool]:
        # Without a limit: what is there now, so that a fast writer cannot keep this poll for ever.
        left = self._metric_lines.cursor.size_bytes() if max_bytes is None else max_bytes
        slice_bytes = _SLICE_BYTES if max_bytes is None else max(1, min(_SLICE_BYTES, max_bytes))
        rows, generation = len(self.metrics), self.metrics.generation
        while True:
            lines = self._metric_lines.read(slice_bytes)
            left -= slice_bytes
            self._garbage_lines += lines.dropped
            if lines.restarted:
                self.metrics.restart()
            if lines.block:
                self.metrics.append(self._decoder.decode(lines.block))
            if left <= 0 or not lines.more:
                changed = len(self.metrics) != rows or self.metrics.generation != generation
                return changed, lines.more

    def _poll_events(self) -> bool:
        lines = _everything(self._event_lines)
        events, garbage = parse_events(lines.block)
        if lines.restarted:
            self.events.clear()
            self.told = Told()
        self.events.extend(events)
        self.told = self.told.hear_all(events)
        self._garbage_lines += garbage + lines.dropped
        return bool(events) or lines.restarted

    def _poll_system(self) -> bool:
        block = _everything(self._system_lines).block
        for line in block.splitlines():
            try:
                self.system.append(self._sample_decoder.decode(line))
            except UNREADABLE:
                self._garbage_lines += 1
        return bool(block)

    def _step_s(self) -> float | None:
        step_ms = self.metrics.recent_median("step_ms")
        return None if step_ms is None else step_ms / 1000


def open_run(path: Path | str) -> RunReader:
    """A run read to its end: `open_run(path).metrics.series("loss").values`.

    Raises InputError when the path is no run directory. Call `poll()` to read on.
    """
    return RunReader(path).read_all()


def _without_heartbeat(state: RunState) -> RunState:
    return msgspec.structs.replace(state, heartbeat_at=0.0)


def _everything(cursor: LineCursor) -> Lines:
    """All complete lines there are now."""
    read = [cursor.read()]
    while read[-1].more:
        read.append(cursor.read())
    restarted = [index for index, lines in enumerate(read) if lines.restarted]
    current = read[restarted[-1] if restarted else 0 :]
    return Lines(
        b"".join(lines.block for lines in current),
        bool(restarted),
        dropped=sum(lines.dropped for lines in read),
    )
