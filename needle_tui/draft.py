"""What the form's values come to: problems by field, remarks, and the plan. Pure, to run on every key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from needle.config import FinetuneSettings, build, check
from needle.errors import InputError
from needle.runs.record import Plan
from needle.units import bytes_text, count_text
from needle_tui.remedies import Remedy, remedies

if TYPE_CHECKING:
    from needle.devices.inventory import Inventory
    from needle.launch.preflight import DataFacts, FinetuneFacts

FILE_FIELDS = frozenset(
    {"data", "checkpoint", "checkpoint_dir", "tokenizer", "out", "overwrite", "max_len", "over_length"}
    | {"python", "xla_flags"}
)
"""Settings whose problems only a look at the files can tell."""


@dataclass(frozen=True)
class Outcome:
    """What the values come to. `missing` says in words why there is no plan yet."""

    problems: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    settings: FinetuneSettings | None = None
    plan: Plan | None = None
    missing: str = ""
    remedies: tuple[Remedy, ...] = ()

    @property
    def can_start(self) -> bool:
        """Whether everything is known and sound."""
        return self.plan is not None and not self.problems


def judge(
    values: Mapping[str, str],
    facts: FinetuneFacts | None,
    inventory: Inventory | None,
    inherited: Mapping[str, str],
    *,
    stale: frozenset[str] = frozenset(),
) -> Outcome:
    """Problems, remarks and plan of these values. `stale` settings changed after the files were looked at."""
    problems = check(FinetuneSettings, values)
    remarks: dict[str, str] = {}
    if facts is not None:
        known = {name: text for name, text in facts.problems.items() if name in FILE_FIELDS - stale}
        problems = {**known, **problems}
        remarks = _remarks(facts)
    remarks.update(dict.fromkeys(stale, "looking…"))
    settings = _settings(values)
    if settings is None:
        return Outcome(problems, remarks, missing=_missing(problems))
    if facts is None or inventory is None:
        waiting = "looking at the files…" if facts is None else "looking at this machine…"
        return Outcome(problems, remarks, settings, missing=waiting)
    return _planned(settings, facts, inventory, inherited, problems, remarks, looking=bool(stale))


def _planned(
    settings: FinetuneSettings,
    facts: FinetuneFacts,
    inventory: Inventory,
    inherited: Mapping[str, str],
    problems: dict[str, str],
    remarks: dict[str, str],
    *,
    looking: bool,
) -> Outcome:
    from needle.launch.plan import make_plan

    try:
        plan = make_plan(settings, inventory, facts, inherited)
    except InputError as error:
        at = error.field or "data"
        problems = {at: str(error).replace("\n  ", "; "), **problems}
        return Outcome(problems, remarks, settings, missing=_missing(problems))
    missing = "looking at the files…" if looking else _missing(problems) if problems else ""
    ways = remedies(settings, plan, lambda changed: make_plan(changed, inventory, facts, inherited))
    return Outcome(problems, remarks, settings, plan, missing, ways)


def _settings(values: Mapping[str, str]) -> FinetuneSettings | None:
    try:
        settings = build(FinetuneSettings, values)
    except InputError:
        return None
    assert isinstance(settings, FinetuneSettings)
    return settings


def _missing(problems: Mapping[str, str]) -> str:
    """`2 settings need a change: data, lr`."""
    names = ", ".join(name.replace("_", " ") for name in problems)
    return f"{len(problems)} setting{'s need' if len(problems) != 1 else ' needs'} a change: {names}"


def _remarks(facts: FinetuneFacts) -> dict[str, str]:
    """What was found of the files, beside their fields."""
    remarks = {}
    if facts.data is not None:
        remarks["data"] = _data_remark(facts.data)
        over = len(facts.data.over_length_lines)
        if over:
            remarks["max_len"] = f"{over} longer"
    if facts.base is not None:
        remarks["checkpoint"] = f"{count_text(facts.base.parameter_count)} params"
    return remarks


def _data_remark(data: DataFacts) -> str:
    bad = len(data.problems)
    if bad:
        return f"{data.examples:,} ok, {bad} bad"
    return f"{data.examples:,} examples" if data.examples < 1_000_000 else bytes_text(data.size_bytes)
