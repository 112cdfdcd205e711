"""Findings in plain words, each with what to do about it. Pure functions of an inventory."""

from __future__ import annotations

from needle.devices.platforms import platform_label
from needle.devices.records import Backend, Device, Interpreter, Inventory, Problem
from needle.units import bytes_text

_CROWDED_SHARE = 0.1


def findings(inventory: Inventory) -> tuple[Problem, ...]:
    """Everything worth telling, the gravest first: what cannot run, then what may mislead."""
    found: dict[str, Problem] = {}
    used = inventory.interpreters[0]
    if used.problem:
        title = "Training cannot run here"
        found[title] = Problem(title, f"{used.label}: {used.problem}", used.fix)
    for backend in inventory.backends:
        if backend.status == "broken":
            title = f"{platform_label(backend.platform)} cannot be used"
            found[title] = Problem(title, backend.reason, _fix_of(backend, inventory))
    crowded = (_crowded(backend, device) for backend in inventory.backends for device in backend.devices)
    for problem in (*crowded, *inventory.problems):
        if problem is not None:
            found.setdefault(problem.title, problem)
    return tuple(found.values())


def can_train(inventory: Inventory) -> bool:
    """Whether some interpreter has a backend that works, or that may work and was not tried yet."""
    return any(
        not interpreter.problem
        and any(backend.status in ("works", "untried") for backend in inventory.backends_of(interpreter))
        for interpreter in inventory.interpreters
    )


def interpreters_with(platform: str, inventory: Inventory) -> tuple[Interpreter, ...]:
    """Other interpreters that can train and where this platform works, or may work."""
    return tuple(
        one
        for one in inventory.interpreters[1:]
        if not one.problem
        and any(
            backend.platform == platform and backend.status in ("works", "untried")
            for backend in inventory.backends_of(one)
        )
    )


def users_text(device: Device) -> str:
    """`python3 (pid 12) 60.0 GiB, pid 13`: who is on a device, as far as its driver tells."""
    words = []
    for process in device.processes:
        who = f"{process.name} (pid {process.pid})" if process.name else f"pid {process.pid}"
        words.append(f"{who} {bytes_text(process.used_bytes)}" if process.used_bytes else who)
    return ", ".join(words)


def _fix_of(backend: Backend, inventory: Inventory) -> str:
    others = [one.label for one in interpreters_with(backend.platform, inventory)]
    if not others:
        return backend.fix
    return f"use {' or '.join(others)}: --python {others[0]}" + (
        f"; or: {backend.fix}" if backend.fix else ""
    )


def _crowded(backend: Backend, device: Device) -> Problem | None:
    """Rows 35 and 37: memory that others took, which JAX may have reserved without using it."""
    used, total = device.used_bytes, device.total_bytes
    if backend.platform in ("cpu", "METAL") or backend.held_by or not used or not total:
        return None
    if used < _CROWDED_SHARE * total:
        return None
    who = users_text(device)
    return Problem(
        f"{device.id} is in use by other programs",
        f"{bytes_text(used)} of {bytes_text(total)} are taken"
        + (f" by {who}" if who else "")
        + "; a program that uses JAX reserves three quarters at its start, used or not",
        "wait for them or end them, choose another device (--devices), or go on with what is left",
    )
