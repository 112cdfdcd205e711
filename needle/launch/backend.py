"""Which backend a run asks for, and why."""

from __future__ import annotations

import re

from needle.devices.doctor import interpreters_with
from needle.devices.inventory import Backend, Device, Inventory
from needle.devices.platforms import canonical_platform
from needle.errors import InputError
from needle.runs.record import Decision

PREFERENCE = ("cuda", "rocm", "tpu", "METAL", "cpu")
_EXCLUSIVE = ("tpu",)
_PLATFORM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def choose_backend(requested: str, inventory: Inventory, *, origin: str = "") -> Decision:
    """The platform to plan for. `requested` is `auto` or a JAX platform name; `origin` says who asked.

    Raises InputError for a platform that is known not to work here, with the fix, and when none works.
    """
    by_name = {backend.platform: backend for backend in inventory.backends}
    if requested != "auto":
        return _forced(requested, inventory, by_name, origin)
    usable = [name for name in PREFERENCE if name in by_name and _is_usable(by_name[name])]
    if not usable:
        raise InputError(_nothing_works(inventory), remedy=_first_fix(inventory), field="backend")
    choice = usable[0]
    rejected = {
        name: _why_not(backend, inventory)
        for name, backend in by_name.items()
        if name != choice and backend.status != "absent" and backend.reason
    }
    return Decision(choice, _why(by_name[choice]), rejected)


def backend_named(inventory: Inventory, platform: str) -> Backend | None:
    """What the inventory knows of a platform."""
    return next((backend for backend in inventory.backends if backend.platform == platform), None)


def first_device(inventory: Inventory, platform: str) -> Device | None:
    """The device a single-device run on this platform will use."""
    backend = backend_named(inventory, platform)
    return backend.devices[0] if backend and backend.devices else None


def _is_usable(backend: Backend) -> bool:
    return backend.status in ("works", "untried") and not _is_taken(backend)


def _is_taken(backend: Backend) -> bool:
    """Row 13: a TPU serves one process."""
    return bool(backend.held_by) and backend.platform in _EXCLUSIVE


def _forced(requested: str, inventory: Inventory, by_name: dict[str, Backend], origin: str) -> Decision:
    name = canonical_platform(requested)
    who = f"asked for by {origin}" if origin else "asked for"
    if name == "gpu":
        return _translated(who, by_name)
    if not _PLATFORM_NAME.fullmatch(name):
        raise InputError(
            f"{requested!r} is not the name of one JAX platform",
            remedy="say auto, cpu, cuda, rocm, tpu, METAL or the name of a plugin's platform",
            field="backend",
        )
    backend = by_name.get(name)
    if backend is None:
        return Decision(name, f"{who}; not a platform this program knows, so the run checks it first")
    if backend.status in ("broken", "absent"):
        others = [one.label for one in interpreters_with(name, inventory)]
        remedy = f"it is in {' and '.join(others)}: --python {others[0]}" if others else backend.fix
        raise InputError(
            f"{name} does not work here: {backend.reason}",
            remedy=remedy or "choose another backend",
            field="backend",
        )
    if _is_taken(backend):
        raise InputError(
            f"{name} is in use by run {backend.held_by}, and serves one process at a time",
            remedy="wait for it, or stop it: needle runs stop " + backend.held_by,
            field="backend",
        )
    return Decision(name, f"{who}; {_why(backend)}")


def _translated(who: str, by_name: dict[str, Backend]) -> Decision:
    """Row 4: `gpu` is cuda, rocm and oneapi to JAX, and all of them must start."""
    found = [known for known in ("cuda", "rocm") if known in by_name and by_name[known].status != "absent"]
    if not found:
        raise InputError(
            "gpu is not one platform: it stands for cuda or rocm, and neither was found here",
            remedy="say cuda or rocm, or install the matching extra; needle devices shows what is here",
            field="backend",
        )
    usable = [name for name in found if _is_usable(by_name[name])]
    if not usable:
        raise InputError(
            f"{found[0]} does not work here: {by_name[found[0]].reason}",
            remedy=by_name[found[0]].fix or "choose another backend",
            field="backend",
        )
    return Decision(usable[0], f"gpu {who}; JAX would demand every GPU platform, {usable[0]} is the one here")


def _why(backend: Backend) -> str:
    if backend.held_by:
        return f"run {backend.held_by} computes on it now; both share its memory"
    if backend.status == "works":
        count = len(backend.devices)
        return f"probed: {count} device{'s' if count != 1 else ''}, an operation and its gradient were right"
    return f"not probed yet ({backend.reason}); the run checks it before training"


def _why_not(backend: Backend, inventory: Inventory) -> str:
    if _is_taken(backend):
        return f"in use by run {backend.held_by}"
    others = [one.label for one in interpreters_with(backend.platform, inventory)]
    return f"{backend.reason}; {others[0]} has it: --python {others[0]}" if others else backend.reason


def _nothing_works(inventory: Inventory) -> str:
    told = [f"{one.platform}: {one.reason}" for one in inventory.backends if one.status == "broken"]
    return "no backend works here: " + ("; ".join(told) or inventory.backends[-1].reason)


def _first_fix(inventory: Inventory) -> str:
    others = [one.label for one in interpreters_with("cpu", inventory)]
    if others:
        return f"use another interpreter: --python {others[0]}"
    fixes = [one.fix for one in reversed(inventory.backends) if one.status == "broken" and one.fix]
    return fixes[0] if fixes else "see: needle devices"
