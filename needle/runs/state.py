"""The state of a run, derived from what is recorded and from what really lives.

The recorded phase is its supervisor's word. A supervisor can die, a machine can restart: then the word is
stale, and what counts is whether the trainer lives and what it said last.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from needle.runs.cursor import LineCursor
from needle.runs.events import Told, parse_events
from needle.runs.liveness import alive, boot_id, host_name, start_time
from needle.runs.record import ENDED_PHASES, UNREADABLE, Phase, RunFiles, RunState, read_request, read_state
from needle.units import duration_text

__all__ = [
    "Liveness",
    "Progress",
    "Status",
    "alive",
    "boot_id",
    "host_name",
    "liveness_of",
    "observe",
    "observe_directory",
    "start_time",
]

STALLED_LEAST_S = 60.0
STALLED_STEPS = 10
_UNCLAIMED_S = 30.0
_SILENT_S = 60.0
_RESUME = "what it saved is kept: needle runs resume"


@dataclass(frozen=True)
class Status:
    """How a run really is. `supervised` is False when nobody is left to record its end or to escalate a
    stop; the phase is true all the same."""

    phase: Phase
    reason: str = ""
    stalled: bool = False
    supervised: bool = True

    @property
    def label(self) -> str:
        """The one word for it: the phase, or `stalled`."""
        return "stalled" if self.stalled else self.phase

    @property
    def ended(self) -> bool:
        return self.phase in ENDED_PHASES


@dataclass(frozen=True)
class Liveness:
    """Which processes of a run live; None when that cannot be seen from this machine."""

    trainer: bool | None
    supervisor: bool | None
    rebooted: bool = False


@dataclass(frozen=True)
class Progress:
    """When a step was last reported (seconds since the epoch, 0 never) and how long a step takes."""

    last_at: float = 0.0
    step_s: float | None = None


def observe(
    state: RunState | None,
    liveness: Liveness,
    told: Told,
    progress: Progress,
    *,
    created_at: float,
    now: float,
) -> Status:
    """The status of a run, from its recorded state and everything that may contradict it. Pure."""
    if state is None:
        return _without_state(told, progress, created_at=created_at, now=now)
    if state.phase in ENDED_PHASES:
        return Status(state.phase, state.reason)
    if liveness.supervisor:
        return _living(state.phase, state.reason, progress, state.started_at, now, supervised=True)
    if liveness.supervisor is None:
        return _from_afar(state, told, progress, now)
    own = told if told.attempt == state.attempt else Told()
    if liveness.trainer:
        phase = _unsupervised_phase(state, own, progress)
        reason = "its supervisor is gone; the training goes on, and a stop request still reaches it"
        return _living(phase, reason, progress, state.started_at, now, supervised=False)
    if own.outcome:
        return Status(own.outcome, own.reason, supervised=False)
    return Status("lost", _why_lost(state, liveness), supervised=False)


def observe_directory(directory: Path | str, *, now: float | None = None) -> Status:
    """The status of a run from its files, without reading its history. Raises InputError for no run."""
    files = RunFiles(directory)
    request = read_request(directory)
    state = read_state(directory)
    told, progress = Told(), Progress()
    if state is None or state.phase not in ENDED_PHASES:
        told = Told().hear_all(
            parse_events(LineCursor(files.events, last_bytes=1 << 18).read(1 << 18).block)[0]
        )
        progress = _progress_of(files.metrics)
    return observe(
        state,
        liveness_of(state),
        told,
        progress,
        created_at=request.created_at,
        now=time.time() if now is None else now,
    )


def liveness_of(state: RunState | None) -> Liveness:
    """Looks at the processes that a state names."""
    if state is None or state.phase in ENDED_PHASES:
        return Liveness(False, False)
    return Liveness(
        alive(state.pid, state.pid_started, state.boot_id, state.host),
        alive(state.supervisor_pid, state.supervisor_started, state.boot_id, state.host),
        rebooted=state.host == host_name() and state.boot_id != boot_id(),
    )


def _without_state(told: Told, progress: Progress, *, created_at: float, now: float) -> Status:
    """No supervisor ever wrote: it is about to, or a program without one reports by itself."""
    if told.outcome:
        return Status(told.outcome, told.reason, supervised=False)
    if progress.last_at:
        if now - progress.last_at <= _patience_s(progress):
            return Status("running", supervised=False)
        silent = duration_text(now - progress.last_at)
        return Status("lost", f"it has no supervisor and has reported nothing for {silent}", supervised=False)
    if now - created_at <= _UNCLAIMED_S:
        return Status("queued")
    return Status("lost", "its supervisor never started", supervised=False)


def _living(
    phase: Phase, reason: str, progress: Progress, started_at: float, now: float, *, supervised: bool
) -> Status:
    since = max(progress.last_at, started_at)
    stalled = phase == "running" and now - since > _patience_s(progress)
    if stalled:
        reason = f"no step for {duration_text(now - since)}" + (f"; {reason}" if reason else "")
    return Status(phase, reason, stalled, supervised)


def _from_afar(state: RunState, told: Told, progress: Progress, now: float) -> Status:
    """A run of another machine: its heartbeat and its steps are the signs of life."""
    last_sign = max(state.heartbeat_at, progress.last_at)
    if now - last_sign <= max(_SILENT_S, _patience_s(progress)):
        return _living(state.phase, state.reason, progress, state.started_at, now, supervised=True)
    if told.outcome and told.attempt == state.attempt:
        return Status(told.outcome, told.reason, supervised=False)
    silent = duration_text(now - last_sign)
    return Status("lost", f"no sign of life from {state.host} for {silent}; {_RESUME}", supervised=False)


def _unsupervised_phase(state: RunState, told: Told, progress: Progress) -> Phase:
    if state.phase == "stopping":
        return "stopping"
    if told.phase:
        return told.phase
    return "running" if progress.last_at > state.started_at else state.phase


def _why_lost(state: RunState, liveness: Liveness) -> str:
    if liveness.rebooted:
        return f"the machine restarted while it ran; {_RESUME}"
    if not state.pid:
        return "its supervisor died before the trainer started"
    return f"trainer and supervisor are gone and neither could say why: killed, or out of memory; {_RESUME}"


def _patience_s(progress: Progress) -> float:
    return max(STALLED_LEAST_S, STALLED_STEPS * (progress.step_s or 0.0))


class _Timing(msgspec.Struct):
    step_ms: float | None = None


def _progress_of(metrics: Path) -> Progress:
    cursor = LineCursor(metrics, last_bytes=1 << 14)
    times: list[float] = []
    for line in cursor.read(1 << 14).block.splitlines():
        try:
            step_ms = msgspec.json.decode(line, type=_Timing).step_ms
        except UNREADABLE:
            continue
        times.extend([step_ms] if step_ms is not None else [])
    middle_ms = sorted(times)[len(times) // 2] if times else None
    return Progress(cursor.cursor.modified_at, None if middle_ms is None else middle_ms / 1000)
