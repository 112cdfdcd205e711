"""Reading one run for Monitor, a bounded turn at a time, in a worker thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from needle.runs.reader import RunReader
from needle.runs.tail import LogTail
from needle_tui.moment import Moment, moment_of

READ_S = 0.2
"""How long one turn may read on in a long history before what was read so far is shown."""
LIVE_REFRESH_S = 1.0
_SLICE_BYTES = 1 << 18


@dataclass(frozen=True)
class LogLines:
    """The log's last lines; `appended` and `generation` are those of `LogTail`."""

    lines: tuple[str, ...]
    appended: int
    generation: int


@dataclass(frozen=True)
class Turn:
    """What one turn of reading found: None where nothing changed. `more`: the history goes on."""

    moment: Moment | None = None
    log: LogLines | None = None
    more: bool = False


class RunFeed:
    """One run and its log. Raises InputError when the directory is no run."""

    def __init__(self, directory: Path, now: Callable[[], float]) -> None:
        self._reader = RunReader(directory)
        self._log = LogTail(self._reader.files.log)
        self._now = now
        self._shown: Moment | None = None
        self._shown_metric = ""

    def take(self, metric: str) -> Turn:
        """Read on; `metric` is the one that the second chart shows."""
        deadline = time.monotonic() + READ_S
        changes = self._reader.poll(_SLICE_BYTES)
        changed = bool(changes)
        while changes.more and time.monotonic() < deadline:
            changes = self._reader.poll(_SLICE_BYTES)
        moment = self._moment(metric) if changed or self._is_due(metric) else None
        log = self._log_lines() if self._log.poll() else None
        return Turn(moment, log, changes.more)

    def _is_due(self, metric: str) -> bool:
        """Whether something is to be shown although no file changed: time, a death, another metric."""
        before, now = self._shown, self._now()
        if before is None or metric != self._shown_metric:
            return True
        if before.is_live and now - before.taken_at >= LIVE_REFRESH_S:
            return True
        return self._reader.status(now) != before.status

    def _moment(self, metric: str) -> Moment:
        self._shown, self._shown_metric = moment_of(self._reader, metric, self._now()), metric
        return self._shown

    def _log_lines(self) -> LogLines:
        return LogLines(tuple(self._log.lines), self._log.appended, self._log.generation)
