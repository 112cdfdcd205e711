"""What a trainer says of itself in `events.jsonl`, read as facts."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from needle.runs.record import UNREADABLE

Event = dict[str, object]
Outcome = Literal["", "finished", "stopped", "failed"]
TrainerPhase = Literal["", "compiling", "running", "scoring"]


@dataclass(frozen=True)
class Told:
    """The newest attempt in its trainer's own words; empty and zero where it said nothing yet."""

    attempt: int = 0
    phase: TrainerPhase = ""
    step: int = 0
    total: int = 0
    outcome: Outcome = ""
    reason: str = ""

    def hear(self, event: Event) -> Told:
        """These facts after one more event; events of an earlier attempt change nothing."""
        attempt = whole(event.get("attempt"), max(1, self.attempt))
        if attempt < self.attempt:
            return self
        known = self if attempt == self.attempt else Told(attempt, total=self.total)
        known = replace(known, total=whole(event.get("total"), known.total))
        kind = event.get("kind")
        if kind == "phase" and event.get("phase") in typing.get_args(TrainerPhase):
            return replace(known, phase=typing.cast(TrainerPhase, event["phase"]))
        if kind == "resumed":
            return replace(known, step=whole(event.get("step"), known.step))
        if kind == "end" and event.get("outcome") in typing.get_args(Outcome):
            outcome = typing.cast(Outcome, event["outcome"])
            return replace(known, outcome=outcome, reason=str(event.get("reason") or ""))
        return known

    def hear_all(self, events: Iterable[Event]) -> Told:
        """These facts after more events."""
        known = self
        for event in events:
            known = known.hear(event)
        return known


def parse_events(block: bytes) -> tuple[list[Event], int]:
    """The events of complete lines, and how many lines were garbage.

    A line glued to the half-written one before it is still found.
    """
    events: list[Event] = []
    garbage = 0
    for line in block.split(b"\n"):
        if not line.strip():
            continue
        event = _event(line) or _event(line[max(0, line.rfind(b'{"time"')) :])
        if event is None:
            garbage += 1
        else:
            events.append(event)
    return events, garbage


def whole(value: object, otherwise: int) -> int:
    """A whole number as one, anything else as `otherwise`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        return otherwise
    return int(value)


def _event(line: bytes) -> Event | None:
    try:
        found = msgspec.json.decode(line)
    except UNREADABLE:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("kind"), str) else None
