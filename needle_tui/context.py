"""What the cockpit is given from outside, in one record, so that a test can hold still what moves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from needle.devices.inventory import Backend, Inventory

Probe = Callable[["Inventory", Callable[["Backend"], None]], "Inventory"]


def known_inventory() -> Inventory:
    """What is known without starting anything: the saved probe, else the static hints."""
    from needle.launch.inventory import known_machine

    return known_machine()


def probe_everything(known: Inventory, on_backend: Callable[[Backend], None]) -> Inventory:
    """Probe every platform that the hints name, each in its own child; seconds."""
    from needle.launch.inventory import probed_machine

    return probed_machine(on_backend=on_backend)


def probe_every_interpreter(known: Inventory, on_backend: Callable[[Backend], None]) -> Inventory:
    """As `probe_everything`, in each interpreter that has JAX; seconds each."""
    from needle.launch.inventory import known_machine, probed_everywhere

    return probed_everywhere(known_machine(), on_backend=on_backend)


@dataclass(frozen=True)
class Context:
    """Where runs live, whether anything may be changed, and the sources of everything that moves."""

    runs: Path | None = None
    read_only: bool = False
    host: str = ""
    theme: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    now: Callable[[], float] = time.time
    known_inventory: Callable[[], Inventory] = known_inventory
    probe: Probe = probe_everything
    probe_all: Probe = probe_every_interpreter

    @property
    def runs_directory(self) -> Path:
        """Where runs live: the directory that was named, else the usual one."""
        from needle.runs.index import default_runs_directory

        return self.runs or default_runs_directory()
