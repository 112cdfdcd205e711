"""Following a run in the foreground: a progress bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import msgspec

from needle.runs.control import request_stop
from needle.runs.reader import RunReader
from needle.runs.record import ENDED_PHASES
from needle.runs.state import Status
from needle.units import duration_text, number_text

_POLL_S = 0.2
_PLAIN_LINE_S = 5.0


@dataclass(frozen=True)
class Moment:
    """What a follower shows, derived from the record."""

    phase: str
    reason: str
    step: int
    total: int
    loss: float | None
    val_loss: float | None
    step_ms: float | None
    tokens_per_s: float | None
    eta_s: float | None


def follow(directory: Path, *, as_json: bool = False) -> int:
    """Follow until the run ends; Ctrl-C asks it to stop and save, twice stops it at once.

    Returns 0 when it finished, 130 when it was stopped from here, 1 when it failed or was killed.
    """
    reader = RunReader(directory)
    print(
        f"run {directory.name}; it goes on if this terminal closes; Ctrl-C stops it and saves",
        file=sys.stderr,
    )
    with _stop_on_interrupt(directory) as asked:
        show = _bar if sys.stderr.isatty() and not as_json else _plain
        show(reader)
    status = reader.status()
    _say_end(reader, status, as_json=as_json)
    if status.phase == "finished":
        return 0
    return 130 if status.phase == "stopped" and asked else 0 if status.phase == "stopped" else 1


def moment_of(reader: RunReader, status: Status) -> Moment:
    """The last values of a run and the time it still needs, from the median of recent steps."""
    metrics = reader.metrics
    step_ms = metrics.recent_median("step_ms")
    step, total = reader.step, reader.total
    left = max(0, total - step)
    return Moment(
        phase=status.label,
        reason=status.reason,
        step=step,
        total=total,
        loss=metrics.last("loss"),
        val_loss=metrics.last("val_loss"),
        step_ms=step_ms,
        tokens_per_s=metrics.last("tokens_per_s"),
        eta_s=left * step_ms / 1000 if step_ms and total else None,
    )


@contextlib.contextmanager
def _stop_on_interrupt(directory: Path) -> Iterator[list[int]]:
    """Turn SIGINT and SIGTERM into stop requests; yields the list of those asked so far."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        request_stop(directory, now=len(asked) > 1)
        words = (
            "stopping now" if len(asked) > 1 else "stopping: the step is finished and saved (again: at once)"
        )
        print(f"\n{words}", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _moments(reader: RunReader) -> Iterator[Moment]:
    """One moment each time something changed, until the run has ended."""
    while True:
        changed = reader.poll()
        status = reader.status()
        if changed or status.phase in ENDED_PHASES:
            yield moment_of(reader, status)
        if status.phase in ENDED_PHASES and not reader.poll():
            return
        time.sleep(_POLL_S)


def _bar(reader: RunReader) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}"),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=5) as progress:
        bar = progress.add_task("starting", total=None, numbers="")
        for moment in _moments(reader):
            progress.update(
                bar,
                description=moment.phase,
                completed=moment.step,
                total=moment.total or None,
                numbers=_numbers(moment),
            )


def _plain(reader: RunReader) -> None:
    """A line when the phase changes and every few seconds: what a log file or a pipe can bear."""
    said_phase, said_at = "", 0.0
    for moment in _moments(reader):
        now = time.monotonic()
        if moment.phase != said_phase or now - said_at >= _PLAIN_LINE_S:
            print(
                f"{_drawn_bar(moment)} {moment.phase:<10} {_numbers(moment)}".rstrip(),
                file=sys.stderr,
                flush=True,
            )
            said_phase, said_at = moment.phase, now


def _drawn_bar(moment: Moment) -> str:
    filled = round(20 * moment.step / moment.total) if moment.total else 0
    return f"[{'#' * filled}{'-' * (20 - filled)}] {moment.step}/{moment.total or '?'}"


def _numbers(moment: Moment) -> str:
    parts = []
    if moment.loss is not None:
        parts.append(f"loss {number_text(moment.loss)}")
    if moment.val_loss is not None:
        parts.append(f"val {number_text(moment.val_loss)}")
    if moment.step_ms is not None:
        parts.append(f"{moment.step_ms:.0f} ms/step")
    if moment.tokens_per_s is not None:
        parts.append(f"{moment.tokens_per_s:,.0f} tok/s")
    if moment.eta_s is not None and moment.phase == "running":
        parts.append(f"ETA {duration_text(moment.eta_s)}")
    return "  ".join(parts)


def _say_end(reader: RunReader, status: Status, *, as_json: bool) -> None:
    located = (
        reader.files.located(str(event["path"])) for event in reader.events if event.get("kind") == "artifact"
    )
    artifacts = [os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path) for path in located]
    if as_json:
        summary = {
            "id": reader.directory.name,
            "directory": str(reader.directory),
            "phase": status.phase,
            "reason": status.reason,
            "step": reader.step,
            "loss": reader.metrics.last("loss"),
            "val_loss": reader.metrics.last("val_loss"),
            "artifacts": artifacts,
        }
        print(msgspec.json.encode(summary).decode())
        return
    print(f"{status.label}{': ' + status.reason if status.reason else ''}", file=sys.stderr)
    for path in artifacts[-1:]:
        print(path)
    if status.phase not in ("finished", "stopped"):
        print(f"the whole log: {reader.directory / 'log.txt'}", file=sys.stderr)
