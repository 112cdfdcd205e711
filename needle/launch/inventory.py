"""The machine as a start needs it: what is remembered at once, else a fresh look, live runs left alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from needle.devices.inventory import (
    Backend,
    Inventory,
    inventory_from,
    known_inventory,
    probed_inventory,
    with_device_use,
)
from needle.launch.backend import backend_named
from needle.launch.environment import AUTO, requested_backend
from needle.launch.live import live_uses, with_live_uses


def known_machine(runs_directory: Path | None = None) -> Inventory:
    """What is known without starting anything: the saved probes, else the static hints."""
    return with_live_uses(known_inventory(), live_uses(runs_directory))


def probed_machine(
    known: Inventory | None = None,
    *,
    on_backend: Callable[[Backend], None] | None = None,
    python: str = "",
    platforms: Collection[str] = (),
    runs_directory: Path | None = None,
) -> Inventory:
    """Probe one interpreter, by its path, the one in use by default; platforms of live runs are left alone.

    `platforms` are tried whatever the hints say. Answers of other interpreters in `known` are kept.
    """
    uses = live_uses(runs_directory)
    found = probed_inventory(
        known or known_inventory(),
        on_backend=on_backend,
        in_use={use.platform for use in uses},
        python=python,
        platforms=platforms,
    )
    return with_live_uses(found, uses)


def probed_everywhere(
    known: Inventory,
    *,
    on_backend: Callable[[Backend], None] | None = None,
    runs_directory: Path | None = None,
) -> Inventory:
    """Probe every interpreter that has JAX, one after the other. `on_backend` hears of the one in use."""
    for place, interpreter in enumerate(known.interpreters):
        if place == 0 or "jax" in interpreter.packages:
            known = probed_machine(
                known,
                on_backend=on_backend if place == 0 else None,
                python=interpreter.path,
                runs_directory=runs_directory,
            )
    return known


def inventory_for_start(
    say: Callable[[str], None],
    backend: str = AUTO,
    python: str = "",
    environment: Mapping[str, str] = os.environ,
    runs_directory: Path | None = None,
) -> Inventory:
    """The machine as seen from the interpreter a run will use; probed where it was not, or was not lately.

    Raises InputError for an interpreter that is not here.
    """
    uses = live_uses(runs_directory)
    asked, _ = requested_backend(backend, environment)
    wanted = [] if asked in (AUTO, "gpu") else [asked]
    tried: set[str] = set()
    while True:
        machine = with_live_uses(inventory_from(python), uses)
        first = machine.interpreters[0]
        if first.problem or first.path in tried or not _is_unsettled(machine, wanted):
            break
        say(f"looking at the backends of {first.label} (remembered for next time) …")
        unknown = [name for name in wanted if backend_named(machine, name) is None]
        machine = probed_machine(machine, python=first.path, platforms=unknown, runs_directory=runs_directory)
        if python or any(one.status in ("works", "untried") for one in machine.backends):
            break
        # It turned out to be broken: the next turn finds the next interpreter that can train.
        tried.add(first.path)
    return with_live_uses(with_device_use(machine, environment), uses)


def _is_unsettled(machine: Inventory, wanted: list[str]) -> bool:
    """Whether a platform that the run may take was not tried yet, and can be tried now."""
    unknown = [name for name in wanted if backend_named(machine, name) is None]
    untried = [one for one in machine.backends if one.status == "untried" and not one.held_by]
    return bool(unknown or untried)
