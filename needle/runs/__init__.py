"""The run directory: written by the training side, read by anyone.

    from needle.runs import open_run
    run = open_run("runs/20261201-031502-finetune-tools")
    run.request.settings, run.state.phase, run.metrics.series("loss").values

Names are loaded when first used, so that a program that only writes never loads numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from needle.runs.control import request_checkpoint, request_stop
    from needle.runs.index import create_run, default_runs_directory, find_runs, remove_run, resolve_run
    from needle.runs.metrics import MetricTable, Series
    from needle.runs.reader import RunReader, open_run
    from needle.runs.state import Status, observe_directory
    from needle.runs.tail import LogTail
    from needle.runs.writer import RunWriter, report

_HOMES = {
    "open_run": "reader",
    "RunReader": "reader",
    "MetricTable": "metrics",
    "Series": "metrics",
    "LogTail": "tail",
    "RunWriter": "writer",
    "report": "writer",
    "Status": "state",
    "observe_directory": "state",
    "create_run": "index",
    "default_runs_directory": "index",
    "find_runs": "index",
    "remove_run": "index",
    "resolve_run": "index",
    "request_stop": "control",
    "request_checkpoint": "control",
}

__all__ = [
    "LogTail",
    "MetricTable",
    "RunReader",
    "RunWriter",
    "Series",
    "Status",
    "create_run",
    "default_runs_directory",
    "find_runs",
    "observe_directory",
    "open_run",
    "remove_run",
    "report",
    "request_checkpoint",
    "request_stop",
    "resolve_run",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
