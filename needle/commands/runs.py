"""`needle runs …`: the record from the command line."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from needle.commands.describe import plan_lines
from needle.commands.printing import print_json
from needle.errors import InputError
from needle.runs.control import request_stop
from needle.runs.index import default_runs_directory, find_runs, remove_run, resolve_run
from needle.runs.reader import RunReader
from needle.runs.record import ENDED_PHASES
from needle.units import age_text, number_text


def run(arguments: argparse.Namespace) -> int:
    """Carry out one verb. Returns the exit status."""
    runs_directory = Path(arguments.runs) if arguments.runs else default_runs_directory()
    if arguments.verb == "list":
        return _list(runs_directory, as_json=arguments.json)
    directory = resolve_run(arguments.run, runs_directory)
    if arguments.verb == "show":
        return _show(directory, as_json=arguments.json)
    if arguments.verb == "watch":
        from needle.commands.follow import follow

        return follow(directory, as_json=arguments.json)
    if arguments.verb == "stop":
        return _stop(directory, now=arguments.now)
    if arguments.verb == "resume":
        return _resume(directory)
    return _remove(directory)


def summary_of(directory: Path) -> dict[str, object]:
    """One run as a flat document."""
    reader = RunReader(directory)
    reader.read_all()
    status = reader.status()
    request = reader.request
    return {
        "id": directory.name,
        "directory": str(directory),
        "name": request.name,
        "task": request.task,
        "phase": status.phase,
        "label": status.label,
        "reason": status.reason,
        "step": reader.step,
        "total": reader.total,
        "loss": reader.metrics.last("loss"),
        "val_loss": reader.metrics.last("val_loss"),
        "backend": request.plan.backend.choice,
        "created_at": request.created_at,
    }


def _list(runs_directory: Path, *, as_json: bool) -> int:
    summaries = []
    for directory in find_runs(runs_directory):
        try:
            summaries.append(summary_of(directory))
        except InputError as error:
            print(f"needle: {error}", file=sys.stderr)
    if as_json:
        print_json(summaries)
    elif not summaries:
        print(f"no runs in {runs_directory}; start one with: needle finetune --sample", file=sys.stderr)
    else:
        print("\n".join(_row(summary) for summary in summaries))
    return 0


def _row(summary: dict[str, object]) -> str:
    loss = summary["loss"]
    shown = number_text(loss) if isinstance(loss, float) else "-"
    steps = f"{summary['step']}/{summary['total'] or '?'}"
    age = age_text(time.time() - float(str(summary["created_at"])))
    return f"{summary['label']!s:<10} {steps:>12}  loss {shown:>8}  {age:>12}  {summary['id']}"


def _show(directory: Path, *, as_json: bool) -> int:
    reader = RunReader(directory)
    reader.read_all()
    summary = summary_of(directory)
    if as_json:
        document = {
            **summary,
            "settings": reader.request.settings,
            "plan": reader.request.plan,
            "events": reader.events,
        }
        print_json(document)
        return 0
    print(_row(summary))
    if summary["reason"]:
        print(f"reason      {summary['reason']}")
    print("\n".join(plan_lines(reader.request.plan)))
    return 0


def _stop(directory: Path, *, now: bool) -> int:
    status = RunReader(directory).refreshed_status()
    if status.phase in ENDED_PHASES:
        raise InputError(f"has already ended: {status.label}", where=directory.name)
    request_stop(directory, now=now)
    print("asked to stop" + (" at once" if now else ": it finishes its step and saves"), file=sys.stderr)
    return 0


def _resume(directory: Path) -> int:
    from needle.launch.start import resume_run

    resume_run(directory)
    print(f"resumed {directory.name}; watch it with: needle runs watch {directory.name}", file=sys.stderr)
    return 0


def _remove(directory: Path) -> int:
    remove_run(directory)
    print(f"deleted {directory}", file=sys.stderr)
    return 0
