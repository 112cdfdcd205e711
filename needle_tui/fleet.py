"""Every run there is, as rows; ended runs are read once, living ones as they grow."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from needle.errors import InputError
from needle.runs.index import find_runs
from needle.runs.metrics import Series
from needle.runs.reader import RunReader
from needle.runs.record import ENDED_PHASES, read_request, read_state
from needle.runs.state import observe_directory

SPARK_POINTS = 24
_SLICE_BYTES = 1 << 18
_POLL_S = 0.1


@dataclass(frozen=True)
class RunRow:
    """One run as the table shows it. `reading` while its history is not read to the end."""

    directory: Path
    name: str
    task: str
    phase: str
    stalled: bool
    reason: str
    step: int
    total: int
    loss: float | None
    best: float | None
    tokens_per_s: float | None
    device: str
    created_at: float
    spark: tuple[float, ...]
    reading: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the run may still change."""
        return self.phase not in ENDED_PHASES


class Fleet:
    """The runs of a directory and of the person's index; `poll` is for a worker thread."""

    def __init__(self, runs_directory: Path, now: Callable[[], float] = time.time) -> None:
        self._runs_directory = runs_directory
        self._now = now
        self._entries: dict[Path, _Entry] = {}

    def poll(self) -> tuple[RunRow, ...]:
        """Rows of every run, newest first; reading of long histories goes on in the next poll."""
        deadline = time.monotonic() + _POLL_S
        found = find_runs(self._runs_directory)
        self._entries = {path: self._entries.get(path) or _Entry(path) for path in found}
        rows = (entry.row(self._now(), deadline) for entry in self._entries.values())
        return tuple(sorted((row for row in rows if row), key=lambda row: -row.created_at))

    def live(self) -> dict[Path, str]:
        """The names of the runs that are alive, without reading any history."""
        return {path: name for path in find_runs(self._runs_directory) if (name := self._living_name(path))}

    def _living_name(self, directory: Path) -> str:
        state = read_state(directory)
        if state is not None and state.phase in ENDED_PHASES:
            return ""
        try:
            if observe_directory(directory, now=self._now()).ended:
                return ""
            request = read_request(directory)
        except InputError:
            return ""
        return request.name or request.id


class _Entry:
    """One run of the fleet: its reader while there is something to read, its row for good afterwards."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._reader: RunReader | None = None
        self._row: RunRow | None = None
        self._signature: tuple[tuple[int, int], ...] = ()

    def row(self, now: float, deadline: float) -> RunRow | None:
        """The row now; None where the directory cannot be read."""
        if self._row is not None and not self._row.is_live and not self._row.reading:
            signature = _signature(self._directory)
            if signature == self._signature:
                return self._row
        try:
            self._read(now, deadline)
        except (InputError, OSError):
            self._row = None
        return self._row

    def _read(self, now: float, deadline: float) -> None:
        signature = _signature(self._directory)
        reader = self._reader or RunReader(self._directory)
        more = reader.poll(_SLICE_BYTES).more
        while more and time.monotonic() < deadline:
            more = reader.poll(_SLICE_BYTES).more
        self._row = row_of(reader, now, reading=more)
        self._signature = signature
        # An ended run's history is not kept in memory once its row is known.
        self._reader = reader if self._row.is_live or more else None


def row_of(reader: RunReader, now: float, *, reading: bool = False) -> RunRow:
    """A row from what was read so far."""
    status, request = reader.status(now), reader.request
    loss = reader.metrics.series("loss")
    finite = loss.values[np.isfinite(loss.values)]
    return RunRow(
        directory=reader.directory,
        name=request.name or request.id,
        task=request.task,
        phase=status.phase,
        stalled=status.stalled,
        reason=status.reason,
        step=reader.step,
        total=reader.total,
        loss=float(loss.values[-1]) if len(loss) else None,
        best=float(finite.min()) if len(finite) else None,
        tokens_per_s=reader.metrics.recent_median("tokens_per_s"),
        device=request.plan.backend.choice,
        created_at=request.created_at,
        spark=spark_points(loss),
        reading=reading,
    )


def spark_points(series: Series) -> tuple[float, ...]:
    """The series as a few means of equal parts; a part with no finite value is left out."""
    parts = np.array_split(series.values, min(SPARK_POINTS, max(1, len(series))))
    means = (float(part[np.isfinite(part)].mean()) for part in parts if np.isfinite(part).any())
    return tuple(means)


def _signature(directory: Path) -> tuple[tuple[int, int], ...]:
    """Changes when state or metrics change."""
    found = []
    for name in ("state.json", "metrics.jsonl"):
        try:
            stat = os.stat(directory / name)
            found.append((stat.st_size, stat.st_mtime_ns))
        except OSError:
            found.append((0, 0))
    return tuple(found)
