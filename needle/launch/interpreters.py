"""Which Python trains, and why. Pure."""

from __future__ import annotations

from needle.devices.inventory import Interpreter, Inventory, interpreter_named
from needle.errors import InputError
from needle.runs.record import Decision

_TELLING = ("jax", "jax-cuda13-plugin", "jax-cuda12-plugin", "jax-rocm7-plugin", "libtpu", "jax-metal")


def choose_interpreter(
    requested: str, inventory: Inventory, named: Inventory | None = None
) -> tuple[Decision, Inventory]:
    """The choice, and the machine as seen from it. `named` is what was found where `requested` points.

    Raises InputError at the field `python` for an interpreter that is not here or cannot train.
    """
    machine = _machine(requested, inventory, named)
    chosen = machine.interpreters[0]
    if chosen.problem:
        raise InputError(f"{chosen.label}: {chosen.problem}", remedy=chosen.fix, field="python")
    reason = f"{'asked for' if requested else 'the best at hand'}: {interpreter_words(chosen)}"
    rejected = {one.label: one.problem or "not asked for" for one in machine.interpreters[1:]}
    return Decision(chosen.label, reason, rejected), machine


def interpreter_words(interpreter: Interpreter) -> str:
    """`Python 3.12.4, jax 0.10.2, jax-cuda12-plugin 0.10.2`."""
    packages = interpreter.packages
    told = [f"{name} {packages[name]}" for name in _TELLING if name in packages]
    return ", ".join([f"Python {interpreter.python}".strip(), *told])


def versions_of(interpreter: Interpreter) -> dict[str, str]:
    """What a run's record keeps: the versions of Python and of everything that computes."""
    return {"python": interpreter.python, **interpreter.packages}


def _machine(requested: str, inventory: Inventory, named: Inventory | None) -> Inventory:
    known = interpreter_named(requested, inventory)
    if known is not None:
        return inventory.seen_from(known)
    if named is not None:
        known = interpreter_named(requested, named)
        if known is not None:
            return named.seen_from(known)
    labels = ", ".join(one.label for one in inventory.interpreters)
    raise InputError(
        f"no interpreter {requested} is known here",
        remedy=f"found: {labels}; or give the path of one",
        field="python",
    )
