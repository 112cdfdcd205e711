"""`needle finetune`: the same plan, record and supervisor as the cockpit, followed in the foreground."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import msgspec

from needle.commands.arguments import given_settings
from needle.commands.describe import plan_lines
from needle.commands.printing import print_json, say
from needle.config import FinetuneSettings, build, fields_of, to_json
from needle.data.report import report_lines
from needle.errors import InputError
from needle.launch.inventory import inventory_for_start
from needle.launch.plan import make_plan
from needle.launch.preflight import FinetuneFacts, inspect_finetune, require_sound
from needle.launch.sample import sample_settings
from needle.launch.start import resume_run, start_run
from needle.runs.index import default_runs_directory, resolve_run


def run(arguments: argparse.Namespace) -> int:
    """Check, plan, start, follow. Returns the exit status."""
    if arguments.resume:
        return _resume(arguments)
    start = to_json(sample_settings()) if arguments.sample else {}
    values = {**start, **given_settings(arguments, FinetuneSettings)}
    facts = inspect_finetune(values)
    require_sound(facts)
    settings = build(FinetuneSettings, values)
    assert isinstance(settings, FinetuneSettings)
    _say_findings(settings, facts)
    runs_directory = _runs_directory(arguments)
    machine = inventory_for_start(
        say, settings.backend, settings.python, os.environ, runs_directory=runs_directory
    )
    plan = make_plan(settings, machine, facts, os.environ)
    if arguments.dry_run:
        _print_plan(plan, as_json=arguments.json)
        return 0
    directory = start_run("finetune", settings, plan, runs_directory)
    return _let_go_or_follow(directory, arguments)


def _resume(arguments: argparse.Namespace) -> int:
    """Go on with an ended run, whose settings are in its record."""
    given = given_settings(arguments, FinetuneSettings)
    if given or arguments.sample or arguments.dry_run:
        flags = {known.name: known.flag or known.name.upper() for known in fields_of(FinetuneSettings)}
        extra = next((flags[name] for name in given), "--sample" if arguments.sample else "--dry-run")
        raise InputError(
            f"--resume goes on with the settings the run was started with; {extra} cannot be given with it",
            remedy="leave it out, or start a new run",
        )
    directory = resolve_run(arguments.resume, _runs_directory(arguments))
    resume_run(directory)
    return _let_go_or_follow(directory, arguments)


def _let_go_or_follow(directory: Path, arguments: argparse.Namespace) -> int:
    if arguments.detach:
        return _let_go(directory, as_json=arguments.json)
    from needle.commands.follow import follow

    return follow(directory, as_json=arguments.json)


def _runs_directory(arguments: argparse.Namespace) -> Path:
    return Path(arguments.runs) if arguments.runs else default_runs_directory()


def _say_findings(settings: FinetuneSettings, facts: FinetuneFacts) -> None:
    """What the checks found that does not stop the run, with line numbers."""
    data = facts.data
    if data is None:
        raise InputError("there is no data to train on", field="data")
    for problem in data.problems[:20]:
        say(f"{data.path}:{problem.line}: left out: {problem.text}")
    if len(data.problems) > 20:
        say(f"{data.path}: {len(data.problems) - 20} more lines left out")
    for warning in data.warnings[:20]:
        say(f"{data.path}:{warning.line}: kept, but {warning.text}")
    if data.over_length_lines and data.counted:
        lines = ", ".join(str(line) for line in data.over_length_lines[:20])
        more = ", …" if len(data.over_length_lines) > 20 else ""
        fate = "cut" if settings.over_length == "cut" else "left out"
        count = len(data.over_length_lines)
        say(f"{data.path}: {count} examples over max-len are {fate}, lines {lines}{more}")
    amount, *findings = report_lines(data.report)
    say(f"data: {amount}")
    for line in findings:
        say(f"  {line}")
    say(f"base: {facts.base_choice.choice} ({facts.base_choice.reason})")


def _print_plan(plan: msgspec.Struct, *, as_json: bool) -> None:
    if as_json:
        print_json(plan)
    else:
        from needle.runs.record import Plan

        assert isinstance(plan, Plan)
        print("\n".join(plan_lines(plan)))


def _let_go(directory: Path, *, as_json: bool) -> int:
    if as_json:
        print(msgspec.json.encode({"id": directory.name, "directory": str(directory)}).decode())
    else:
        print(directory.name)
        say(f"started; watch it with: needle-tui watch {directory.name}")
    return 0
