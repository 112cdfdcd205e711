"""Which backend a run asks for, and why."""

from __future__ import annotations

from needle.devices.inventory import Backend, Device, Inventory
from needle.errors import InputError
from needle.runs.record import Decision

PREFERENCE = ("cuda", "rocm", "tpu", "METAL", "cpu")
_SPELLINGS = {"metal": "METAL", "gpu": "gpu"}


def choose_backend(requested: str, inventory: Inventory, *, origin: str = "") -> Decision:
    """The platform to plan for. `requested` is `auto` or a JAX platform name; `origin` says who asked.

    Raises InputError for a platform that is known not to work here, with the fix.
    """
    by_name = {backend.platform: backend for backend in inventory.backends}
    if requested != "auto":
        return _forced(requested, by_name, origin)
    usable = [name for name in PREFERENCE if name in by_name and by_name[name].status in ("works", "untried")]
    choice = usable[0] if usable else "cpu"
    found = by_name.get(choice)
    rejected = {
        name: backend.reason
        for name, backend in by_name.items()
        if name != choice and backend.status != "absent" and backend.reason
    }
    return Decision(choice, _why(found), rejected)


def backend_named(inventory: Inventory, platform: str) -> Backend | None:
    """What the inventory knows of a platform."""
    return next((backend for backend in inventory.backends if backend.platform == platform), None)


def first_device(inventory: Inventory, platform: str) -> Device | None:
    """The device a single-device run on this platform will use."""
    backend = backend_named(inventory, platform)
    return backend.devices[0] if backend and backend.devices else None


def _forced(requested: str, by_name: dict[str, Backend], origin: str) -> Decision:
    name = _SPELLINGS.get(requested.lower(), requested if requested == "METAL" else requested.lower())
    who = f"asked for by {origin}" if origin else "asked for"
    if name == "gpu":
        found = [
            known for known in ("cuda", "rocm") if known in by_name and by_name[known].status != "absent"
        ]
        if not found:
            raise InputError(
                "gpu is not one platform: it stands for cuda or rocm, and neither was found here",
                remedy="say cuda or rocm, or install the matching extra; needle devices shows what is here",
                field="backend",
            )
        return Decision(
            found[0], f"gpu {who}; JAX would demand every GPU platform, {found[0]} is the one here"
        )
    backend = by_name.get(name)
    if backend is not None and backend.status in ("broken", "absent"):
        raise InputError(
            f"{name} does not work here: {backend.reason}",
            remedy=backend.fix or "choose another backend",
            field="backend",
        )
    if backend is None:
        return Decision(name, f"{who}; not a platform this program knows, so the run checks it first")
    return Decision(name, f"{who}; {_why(backend)}")


def _why(backend: Backend | None) -> str:
    if backend is None:
        return "the only platform every JAX has"
    if backend.status == "works":
        count = len(backend.devices)
        return f"probed: {count} device{'s' if count != 1 else ''}, an operation and its gradient were right"
    return f"not probed yet ({backend.reason}); the run checks it before training"
