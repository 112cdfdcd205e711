"""The detached parent of a trainer: `python -m needle.runs.supervisor RUN_DIR`.

It starts the trainer, samples the machine, carries out stop requests and records how the run ended. What
to do is decided in `lifecycle`; here it is done. It must stay small (under 25 MB) and outlive everything:
it has its own session, ignores SIGHUP, and no error of its own ends it while the trainer lives.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from needle.errors import NeedleError
from needle.runs.control import clear_requests
from needle.runs.cursor import LineCursor
from needle.runs.deaths import Evidence
from needle.runs.detached import detach, sole_supervisor
from needle.runs.events import Told, parse_events
from needle.runs.lifecycle import Action, Ask, Finish, Graces, Seen, Signal, Supervised, Tell, next_step
from needle.runs.listening import Listener
from needle.runs.liveness import boot_id, host_name, start_time
from needle.runs.record import (
    ENDED_PHASES,
    Phase,
    RunFiles,
    RunRequest,
    RunState,
    read_request,
    read_state,
)
from needle.runs.sampling import Sampler, group_members, memory_kills
from needle.runs.statefile import HEARTBEAT_S, StateFile
from needle.runs.text import last_meaningful_line
from needle.runs.trainer import Trainer, start_trainer, trainer_environment
from needle.runs.writer import RunWriter

GRACE_VARIABLES = ("NEEDLE_STOP_GRACE_S", "NEEDLE_START_GRACE_S", "NEEDLE_TERM_GRACE_S")
_TICK_S = 0.5
_LEFTOVERS_S = 2.0
_LAST_WORDS_BYTES = 1 << 16
_FULL_BYTES = 1 << 16
_REQUEST = b"stop\n"


def main(arguments: list[str]) -> int:
    """Supervise one run to its end. Returns 0 once the end is recorded, 1 when nothing can be recorded and
    so nothing was started, 2 when there is nothing to do."""
    if len(arguments) != 1 or not os.path.isdir(arguments[0]):
        print("usage: python -m needle.runs.supervisor RUN_DIR (a run directory)", file=sys.stderr)
        return 2
    directory = Path(arguments[0]).absolute()
    wake = detach()
    with sole_supervisor(directory) as alone:
        if not alone:
            print(f"needle: {directory.name} has a supervisor or a living trainer already", file=sys.stderr)
            return 2
        recorded = Supervisor(directory, graces_of(os.environ), wake).run()
    return 0 if recorded else 1


def graces_of(environment: Mapping[str, str]) -> Graces:
    """How long each rung of a stop waits; NEEDLE_STOP_GRACE_S and its like change it."""
    usual = Graces()
    waits = [usual.running_s, usual.starting_s, usual.term_s]
    for index, name in enumerate(GRACE_VARIABLES):
        with contextlib.suppress(ValueError, KeyError):
            waits[index] = max(0.0, float(environment[name]))
    return Graces(*waits)


class Supervisor:
    """One attempt of one run, from before its trainer starts until its end is recorded."""

    def __init__(self, directory: Path, graces: Graces, wake: int) -> None:
        self._files = RunFiles(directory)
        self._wake = wake
        self._attempt = _last_attempt(directory) + 1
        self._kills_before = memory_kills()
        self._listener = Listener(self._files, self._attempt)
        self._writer = RunWriter(directory, self._attempt)
        self._state_file = StateFile(self._files)
        self._known = Supervised(_first_state(self._attempt), graces)
        self._trainer: Trainer | None = None
        self._sampler: Sampler | None = None
        self._signals = 0
        self._identified_at = time.monotonic()
        self._complaints: set[str] = set()

    def run(self) -> bool:
        """Start the trainer and stay with it to its end. Returns False when no state can be written."""
        if self._attempt > 1:
            clear_requests(self._files.directory)
        if not self._save():
            print(f"needle: {self._files.state} cannot be written; is the disk full?", file=sys.stderr)
            return False
        try:
            request = read_request(self._files.directory)
            if self._request():
                return self._end_unstarted("stopped", "stopped before it started")
            self._start(request)
        except NeedleError as error:
            return self._end_unstarted("failed", " ".join(str(error).split()))
        while self._known.state.phase not in ENDED_PHASES:
            try:
                self._wait()
                self._tick()
            except Exception as error:
                # A full disk or a bug here must not take the training with it.
                self._complain(f"supervisor: {type(error).__name__}: {error}")
        return True

    def _start(self, request: RunRequest) -> None:
        directory, total = self._files.directory, request.plan.total_steps
        environment = trainer_environment(os.environ, request.plan, directory, self._attempt)
        self._trainer = start_trainer(directory, request, self._attempt, environment)
        self._change(pid=self._trainer.pid, pid_started=start_time(self._trainer.pid), total=total)
        self._save()
        try:
            self._sampler = Sampler(self._trainer.pid, self._attempt, environment, self._append_sample)
            self._sampler.start()
        except Exception as error:
            # A run without samples of the machine is still a run.
            self._sampler = None
            self._complain(f"the machine is not sampled: {type(error).__name__}: {error}")

    def _wait(self) -> None:
        """Until a signal arrives or the tick is over."""
        ready, _, _ = select.select([self._wake], [], [], _TICK_S)
        if ready:
            arrived = os.read(self._wake, 512)
            self._signals += sum(arrived.count(number) for number in (signal.SIGTERM, signal.SIGINT))

    def _tick(self) -> None:
        # The exit first: then everything the trainer ever wrote is there to be read.
        end = self._trainer.reap() if self._trainer else None
        self._listener.listen()
        self._identify()
        seen = Seen(
            now=time.monotonic(),
            at=time.time(),
            told=self._listener.told,
            step=self._listener.step,
            step_s=self._listener.step_s,
            request=self._request(),
            signals=self._signals,
            exit=end,
            evidence=self._evidence() if end else Evidence(),
        )
        self._known, actions = next_step(self._known, seen)
        for action in actions:
            self._do(action)
        self._save()

    def _do(self, action: Action) -> None:
        match action:
            case Ask():
                # On a full disk the trainer is not asked, but the signals that follow still reach it.
                with contextlib.suppress(OSError):
                    if not self._request():
                        self._files.stop_request.write_bytes(_REQUEST)
            case Signal(number) if self._trainer:
                self._trainer.signal(number)
            case Tell(stage, message):
                self._writer.event("stop", stage=stage, message=message)
            case Finish():
                self._finish()

    def _finish(self) -> None:
        self._state_file.save_last(self._known.state)
        if self._sampler:
            self._sampler.stop()
            if self._sampler.problem:
                self._complain(f"some samples of the machine failed: {self._sampler.problem}")
        left = group_members(self._known.state.pid)
        if left:
            self._complain(f"the trainer left {len(left)} processes behind; they were ended")
            self._end_leftovers()

    def _end_leftovers(self) -> None:
        group = self._known.state.pid
        deadline = time.monotonic() + _LEFTOVERS_S
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGTERM)
            while group_members(group):
                if time.monotonic() > deadline:
                    os.killpg(group, signal.SIGKILL)
                    return
                time.sleep(0.05)

    def _request(self) -> bytes:
        try:
            # An empty file, made by hand, is a request too.
            return self._files.stop_request.read_bytes() or _REQUEST
        except OSError:
            return b""

    def _evidence(self) -> Evidence:
        kills, sampler = memory_kills(), self._sampler
        known = self._kills_before is not None and kills is not None
        return Evidence(
            last_words=self._last_words(),
            peak_bytes=max(
                sampler.peak_bytes if sampler else 0, self._trainer.peak_bytes if self._trainer else 0
            ),
            limit_bytes=sampler.limit_bytes if sampler else 0,
            limit_source=sampler.limit_source if sampler else "",
            disk_full=_disk_full(self._files.directory),
            memory_kills=(kills or 0) - (self._kills_before or 0) if known else None,
        )

    def _last_words(self) -> str:
        try:
            with open(self._files.log, "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_WORDS_BYTES))
                words = log.read()
        except OSError:
            return ""
        mark = words.rfind(b"=== needle: attempt ")
        return last_meaningful_line(words[max(0, mark) :])

    def _identify(self) -> None:
        """Keep the recorded start times true: they move when someone sets the machine's clock."""
        if self._trainer and time.monotonic() - self._identified_at >= HEARTBEAT_S:
            self._identified_at = time.monotonic()
            started = start_time(self._trainer.pid)
            if abs(started - self._known.state.pid_started) > 0.5:
                self._change(pid_started=started, supervisor_started=start_time(os.getpid()))

    def _end_unstarted(self, phase: Phase, reason: str) -> bool:
        now = time.time()
        self._change(phase=phase, reason=reason, ended_at=now, heartbeat_at=now)
        self._state_file.save_last(self._known.state)
        return True

    def _change(self, **fields: object) -> None:
        state = msgspec.structs.replace(self._known.state, **fields)
        self._known = dataclasses.replace(self._known, state=state)

    def _save(self) -> bool:
        return self._state_file.save(self._known.state)

    def _append_sample(self, line: bytes) -> None:
        with open(self._files.system, "ab", buffering=0) as file:
            file.write(line + b"\n")

    def _complain(self, message: str) -> None:
        if message not in self._complaints:
            self._complaints.add(message)
            self._writer.event("warning", message=message)


def _last_attempt(directory: Path) -> int:
    """The number of the attempt before; from the events when the state is lost or unreadable."""
    state = read_state(directory)
    if state is not None:
        return state.attempt
    events = LineCursor(RunFiles(directory).events, last_bytes=1 << 16)
    return Told().hear_all(parse_events(events.read().block)[0]).attempt


def _disk_full(directory: Path) -> bool:
    try:
        disk = os.statvfs(directory)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _FULL_BYTES


def _first_state(attempt: int) -> RunState:
    now = time.time()
    return RunState(
        phase="starting",
        host=host_name(),
        boot_id=boot_id(),
        attempt=attempt,
        supervisor_pid=os.getpid(),
        supervisor_started=start_time(os.getpid()),
        started_at=now,
        heartbeat_at=now,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
