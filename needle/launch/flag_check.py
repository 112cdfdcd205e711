"""Are these XLA flags known to the interpreter that will train? An unknown one aborts it (row 32)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from needle.devices.flags import FLAGS, flags_problem, merged_flags
from needle.devices.inventory import Inventory, Surroundings, inventory_from, probed_inventory
from needle.errors import InputError


def check_flags(
    extra: str, machine: Inventory, inherited: Mapping[str, str], *, cache_directory: Path | None = None
) -> None:
    """Start JAX of the interpreter in use once with these flags; the answer is remembered.

    Raises InputError at the field `xla_flags` with the flag's name. Flags in the person's environment need
    no such check: every probe starts with them.
    """
    own = inherited.get(FLAGS, "")
    problem = flags_problem(own, extra)
    if problem:
        raise InputError(problem, field="xla_flags")
    interpreter = machine.interpreters[0]
    if not extra.strip() or interpreter.problem:
        return
    around = Surroundings(
        environment={**inherited, FLAGS: merged_flags(own, extra)},
        cache_directory=cache_directory
        or Path(platformdirs.user_cache_dir("needle", appauthor=False), "flags"),
    )
    known = inventory_from(interpreter.path, around)
    (cpu,) = (backend for backend in known.backends if backend.platform == "cpu")
    if cpu.status == "untried":
        others = [backend.platform for backend in known.backends if backend.platform != "cpu"]
        asked = probed_inventory(known, python=interpreter.path, in_use=others, surroundings=around)
        (cpu,) = (backend for backend in asked.backends if backend.platform == "cpu")
    if cpu.status == "broken":
        raise InputError(cpu.reason, remedy="correct it, or leave it out", field="xla_flags")
