"""Which live run computes on which platform of this machine: it is not probed, its own word is taken."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from needle.devices.inventory import Backend, Device, Inventory
from needle.errors import InputError
from needle.runs.events import parse_events
from needle.runs.index import find_runs
from needle.runs.record import ENDED_PHASES, RunFiles, read_request, read_state
from needle.runs.state import host_name, observe_directory


@dataclass(frozen=True)
class LiveUse:
    """A live run and its platform. `device` is the kind that it reported, empty before it did."""

    platform: str
    run: str
    python: str
    pid: int = 0
    device: str = ""
    device_count: int = 0


def live_uses(runs_directory: Path | None = None) -> tuple[LiveUse, ...]:
    """The runs that are alive on this machine, newest first, with what they compute on."""
    uses = []
    for directory in find_runs(runs_directory):
        with contextlib.suppress(InputError):
            use = _use_of(directory)
            if use is not None:
                uses.append(use)
    return tuple(uses)


def with_live_uses(inventory: Inventory, uses: Iterable[LiveUse]) -> Inventory:
    """The inventory with the run that holds each platform, and what it reported where nobody asked. Pure."""
    by_platform = {use.platform: use for use in reversed(tuple(uses))}
    for interpreter in inventory.interpreters:
        backends = tuple(
            _with_use(backend, by_platform.get(backend.platform), interpreter.path)
            for backend in inventory.backends_of(interpreter)
        )
        inventory = inventory.with_backends(interpreter, backends)
    return inventory


def _use_of(directory: Path) -> LiveUse | None:
    state = read_state(directory)
    if state is not None and (state.phase in ENDED_PHASES or state.host != host_name()):
        return None
    request = read_request(directory)
    if request.host != host_name() or observe_directory(directory).ended:
        return None
    told = _backend_event(directory, state.attempt if state else 1)
    return LiveUse(
        platform=request.plan.backend.choice,
        run=request.id,
        python=next(iter(RunFiles(directory).command_of(request.plan)), ""),
        pid=state.pid if state else 0,
        device=str(told.get("device") or ""),
        device_count=_count(told.get("devices")),
    )


def _backend_event(directory: Path, attempt: int) -> dict[str, object]:
    """What the trainer said of its backend in this attempt."""
    try:
        block = RunFiles(directory).events.read_bytes()
    except OSError:
        return {}
    told = [
        event
        for event in parse_events(block)[0]
        if event.get("kind") == "backend" and event.get("attempt") == attempt
    ]
    return told[-1] if told else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _with_use(backend: Backend, use: LiveUse | None, python: str) -> Backend:
    if use is None:
        return replace(backend, held_by="") if backend.held_by else backend
    held = replace(backend, held_by=use.run)
    if backend.status == "works" or not use.device or use.python != python:
        return held
    kinds = backend.devices or tuple(
        Device(f"{use.platform}:{index}", use.platform, use.device, index)
        for index in range(use.device_count or 1)
    )
    return replace(held, status="works", devices=kinds, reason=f"run {use.run} computes on it now", fix="")
