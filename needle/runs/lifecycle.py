"""What a supervisor does next, as a pure function of what it knows and what it sees.

    queued -> starting -> compiling -> running -> finished | failed | killed
                  \\___________\\__________\\-> stopping -> stopped | killed

A stop request climbs a ladder: asked (the trainer finishes its step and saves), TERM, KILL.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from needle.runs.deaths import Evidence, Exit, explain, signal_name
from needle.runs.events import Told
from needle.runs.record import Phase, RunState
from needle.units import duration_text

Stage = Literal["", "asked", "term", "kill"]
_NOTHING_TOLD = Told()
_NO_EVIDENCE = Evidence()
_UNKILLABLE_AFTER_S = 30.0
_GRACE_STEPS = 3


@dataclass(frozen=True)
class Graces:
    """How long a trainer has to stop by itself, and then to heed TERM, before the next rung."""

    running_s: float = 60.0
    starting_s: float = 5.0
    term_s: float = 10.0


@dataclass(frozen=True)
class Seen:
    """What a supervisor sees in one tick. `now` is a monotonic clock, `at` the time of day.

    `told`, `step` and `step_s` are the trainer's newest words, 0 where it said nothing; `request` is the
    content of control/stop, `signals` how often the supervisor itself was asked to end. `evidence` matters
    only with an `exit`.
    """

    now: float
    at: float
    told: Told = _NOTHING_TOLD
    step: int = 0
    step_s: float = 0.0
    request: bytes = b""
    signals: int = 0
    exit: Exit | None = None
    evidence: Evidence = _NO_EVIDENCE


@dataclass(frozen=True)
class Ask:
    """Leave a stop request where the trainer looks for it."""


@dataclass(frozen=True)
class Signal:
    """Send a signal to the trainer's process group."""

    number: int


@dataclass(frozen=True)
class Tell:
    """Record a rung of the ladder as a stop event."""

    stage: Stage
    message: str


@dataclass(frozen=True)
class Finish:
    """The attempt is over: end what it left behind, and go."""


Action = Ask | Signal | Tell | Finish


@dataclass(frozen=True)
class Supervised:
    """A running attempt as its supervisor knows it."""

    state: RunState
    graces: Graces = Graces()
    stage: Stage = ""
    stage_since: float = 0.0
    request: bytes = b""
    signals: int = 0
    warned: bool = False


def next_step(before: Supervised, seen: Seen) -> tuple[Supervised, tuple[Action, ...]]:
    """The attempt after one tick, and what to do about it."""
    known = _learn(before, seen)
    if seen.exit is None:
        return _climb(known, seen)
    actions: tuple[Action, ...] = (Finish(),)
    if known.stage == "" and _wish(known, seen):
        # The trainer heeded the request before its supervisor came to see it.
        known, (tell,) = _rung(known, seen, "asked", "asked to stop, and it did")
        actions = (tell, *actions)
    return replace(known, state=_ended(known, seen, seen.exit)), actions


def _learn(before: Supervised, seen: Seen) -> Supervised:
    """Take over what the trainer said."""
    state = before.state
    told = seen.told if seen.told.attempt == state.attempt else _NOTHING_TOLD
    step = max(seen.step, told.step, state.step)
    phase: Phase = state.phase
    if phase != "stopping":
        phase = "running" if seen.step and not told.phase else told.phase or phase
    state = msgspec.structs.replace(state, phase=phase, step=step, total=told.total or state.total)
    return replace(before, state=state)


def _climb(known: Supervised, seen: Seen) -> tuple[Supervised, tuple[Action, ...]]:
    """One rung up the ladder when it is asked for or due."""
    wish = _wish(known, seen)
    known = replace(known, request=seen.request, signals=seen.signals)
    waited = seen.now - known.stage_since
    if known.stage == "" and wish == "stop":
        grace = _grace_s(known, seen)
        message = f"asked to finish its step and save; TERM follows in {duration_text(grace)}"
        return _rung(known, seen, "asked", message, Ask())
    if known.stage in ("", "asked") and (wish == "now" or (known.stage and waited >= _grace_s(known, seen))):
        message = (
            f"{_waited(known, waited)}SIGTERM sent; KILL follows in {duration_text(known.graces.term_s)}"
        )
        # A stopped process (SIGSTOP) sees TERM only once it continues.
        return _rung(known, seen, "term", message, Ask(), Signal(signal.SIGTERM), Signal(signal.SIGCONT))
    if known.stage == "term" and (wish == "now" or waited >= known.graces.term_s):
        return _rung(known, seen, "kill", f"{_waited(known, waited)}SIGKILL sent", Signal(signal.SIGKILL))
    if known.stage == "kill" and waited >= _UNKILLABLE_AFTER_S and not known.warned:
        message = (
            "SIGKILL has no effect: it hangs inside a driver or a file system, and only a restart ends it"
        )
        state = msgspec.structs.replace(known.state, reason=message)
        return replace(known, state=state, warned=True), (Tell("kill", message),)
    return known, ()


def _wish(known: Supervised, seen: Seen) -> Literal["", "stop", "now"]:
    """What is newly asked for: by a file whose content changed, or by a signal to the supervisor."""
    asked_by_file = bool(seen.request) and seen.request != known.request
    asked_by_signal = seen.signals > known.signals
    if asked_by_file and seen.request.startswith(b"now"):
        return "now"
    if asked_by_signal and (known.stage or seen.signals - known.signals > 1):
        return "now"
    return "stop" if asked_by_file or asked_by_signal else ""


def _grace_s(known: Supervised, seen: Seen) -> float:
    """Time to stop by itself: a few steps at least, little while there is nothing to save."""
    told = seen.told if seen.told.attempt == known.state.attempt else _NOTHING_TOLD
    if not seen.step and told.phase != "running":
        return known.graces.starting_s
    return max(known.graces.running_s, _GRACE_STEPS * seen.step_s)


def _rung(
    known: Supervised, seen: Seen, stage: Stage, message: str, *actions: Action
) -> tuple[Supervised, tuple[Action, ...]]:
    state = msgspec.structs.replace(known.state, phase="stopping", stop_stage=stage)
    climbed = replace(known, state=state, stage=stage, stage_since=seen.now)
    return climbed, (*actions, Tell(stage, message))


def _waited(known: Supervised, waited: float) -> str:
    return f"still there after {duration_text(waited)}: " if known.stage else ""


def _ended(known: Supervised, seen: Seen, end: Exit) -> RunState:
    phase, reason = _verdict(known, seen, end)
    return msgspec.structs.replace(
        known.state,
        phase=phase,
        reason=reason,
        exit_code=end.code,
        signal=end.signal,
        ended_at=seen.at,
        heartbeat_at=seen.at,
    )


def _verdict(known: Supervised, seen: Seen, end: Exit) -> tuple[Phase, str]:
    """How the attempt counts. What the trainer said of its end is believed, whatever its exit was after."""
    told = seen.told if seen.told.attempt == known.state.attempt else _NOTHING_TOLD
    if told.outcome == "failed":
        return "failed", told.reason or explain(end, seen.evidence)
    if told.outcome:
        return told.outcome, _after_the_end(told.reason, known, end)
    if known.stage in ("term", "kill") and end.code != 0:
        return _forced(known, seen, end)
    if end.signal is not None:
        return "killed", explain(end, seen.evidence)
    if end.code == 0:
        return ("stopped", "stopped on request") if known.stage else ("finished", "")
    return "failed", explain(end, seen.evidence)


def _after_the_end(reason: str, known: Supervised, end: Exit) -> str:
    """A trainer that had done its work may still crash while it shuts down: said, but no failure."""
    if end.code == 0 or known.stage in ("term", "kill"):
        return reason
    how = signal_name(end.signal) if end.signal is not None else f"exit code {end.code}"
    return f"{reason}; {how} while shutting down, after its work was done".lstrip("; ")


def _forced(known: Supervised, seen: Seen, end: Exit) -> tuple[Phase, str]:
    """The trainer did not stop by itself: TERM still counts as stopped, KILL does not."""
    lost = "steps after its last checkpoint are lost" if seen.step else "no step was made yet"
    if end.signal == signal.SIGKILL:
        return "killed", f"stopped on request by SIGKILL, as it heeded nothing else; {lost}"
    how = signal_name(end.signal) if end.signal is not None else "SIGTERM"
    return "stopped", f"stopped on request by {how}, as it did not stop by itself in time; {lost}"
