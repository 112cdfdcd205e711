"""Changes that would make a run fit, each with the bill it would have. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from needle.config import FinetuneSettings, Value
from needle.errors import InputError
from needle.runs.record import MemoryBill, Plan

Planner = Callable[[FinetuneSettings], Plan]


@dataclass(frozen=True)
class Remedy:
    """One setting changed, and what the run would need then."""

    field: str
    value: Value
    bill: MemoryBill


def remedies(settings: FinetuneSettings, plan: Plan, plan_of: Planner) -> tuple[Remedy, ...]:
    """For a plan that does not fit: of each kind of change the smallest that would make it fit."""
    if plan.memory is None or plan.memory.fits is not False:
        return ()
    found = (
        _first_that_fits(
            settings, "placement", ["host"] if plan.placement.choice == "device" else [], plan_of
        ),
        _first_that_fits(settings, "batch_size", _halves(settings.batch_size), plan_of),
        _first_that_fits(settings, "max_len", _halves(settings.max_len, least=64), plan_of),
    )
    return tuple(remedy for remedy in found if remedy is not None)


def _first_that_fits(
    settings: FinetuneSettings, field: str, values: list[Value], plan_of: Planner
) -> Remedy | None:
    for value in values:
        try:
            plan = plan_of(dataclasses.replace(settings, **{field: value}))  # type: ignore[arg-type]
        except InputError:
            continue
        if plan.memory is not None and plan.memory.fits:
            return Remedy(field, value, plan.memory)
    return None


def _halves(value: int, least: int = 1) -> list[Value]:
    halves: list[Value] = []
    while value // 2 >= least:
        value //= 2
        halves.append(value)
    return halves
