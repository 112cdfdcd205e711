"""`python -m needle.train RUN_DIRECTORY`: what a supervisor starts. Reads `run.json`, reports to the record.

Nothing heavy is imported before signals are heard and the record is open, so that whatever goes wrong from
here on, a missing JAX included, is told as the end of the run.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module

from needle.errors import InputError, NeedleError
from needle.runs.record import RunRequest, read_request
from needle.runs.writer import RunWriter, attempt_of_environment
from needle.train.ending import Ending, ending_of
from needle.train.stop import StopSignal

TASK_MODULES = {"finetune": "needle.train.finetune"}


def main(arguments: list[str]) -> int:
    """Run the task of one run directory to its end. Returns the exit status."""
    if len(arguments) != 1:
        print("usage: python -m needle.train RUN_DIRECTORY", file=sys.stderr)
        return InputError.exit_status
    try:
        request = read_request(arguments[0])
    except NeedleError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    writer = RunWriter(arguments[0], attempt_of_environment())
    signals = StopSignal()
    signals.listen(at_once=lambda name: _end_at_once(writer, name))
    ending = _outcome(request, writer, signals)
    writer.event("end", outcome=ending.outcome, reason=ending.reason)
    print(f"{ending.outcome}: {ending.reason}" if ending.reason else ending.outcome, flush=True)
    writer.close()
    if ending.abandons_work:
        # Leaving the interpreter in the normal way would wait for it.
        sys.stderr.flush()
        os._exit(ending.exit_status)
    return ending.exit_status


def _outcome(request: RunRequest, writer: RunWriter, signals: StopSignal) -> Ending:
    """Run the task; whatever stops it becomes an ending here and nowhere else."""
    try:
        task = import_module(TASK_MODULES[request.task])
        ending: Ending = task.run(request, writer, signals)
        return ending
    except BaseException as error:
        ending = ending_of(error)
        if not ending.expected:
            traceback.print_exc()
        return ending


def _end_at_once(writer: RunWriter, signal_name: str) -> None:
    """The last words when a second signal leaves no time to finish the step."""
    writer.event(
        "end", outcome="stopped", reason=f"ended at once by a second {signal_name}; later steps are lost"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
