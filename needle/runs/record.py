"""The run directory: its layout, its schemas, and how its files are written.

    run.json       RunRequest, written once
    state.json     RunState, replaced atomically; the supervisor is its only writer
    metrics.jsonl  one line a step, appended by the trainer
    events.jsonl   one line an event, appended by trainer and supervisor
    system.jsonl   SystemSample lines, appended by the supervisor
    log.txt        the trainer's own output
    checkpoints/   artifacts/   control/

Times named `*_at` are seconds since the epoch; `time` in a line is seconds since its attempt began, from
a monotonic clock. Non-finite numbers are the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import Literal

import msgspec

from needle.errors import InputError

SCHEMA_VERSION = 1

# What decoding raises for content that is not ours: no JSON, other JSON, no UTF-8, nested without end.
UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)

Phase = Literal[
    "queued", "starting", "compiling", "running", "scoring", "stopping",
    "finished", "stopped", "failed", "killed", "lost",
]  # fmt: skip
ENDED_PHASES: frozenset[str] = frozenset({"finished", "stopped", "failed", "killed", "lost"})


class Decision(msgspec.Struct, frozen=True):
    """Something chosen for the person, and why. `rejected` says of each other option why not."""

    choice: str
    reason: str
    rejected: dict[str, str] = {}


class Variable(msgspec.Struct, frozen=True):
    """One environment variable of the child. `value` None removes it; `kept` means the person set it."""

    name: str
    value: str | None
    reason: str
    kept: bool = False


class MemoryPart(msgspec.Struct, frozen=True):
    """One line of the memory bill, in bytes."""

    name: str
    size_bytes: int


class MemoryBill(msgspec.Struct, frozen=True):
    """What a run needs of one memory and what that memory has. `limit_bytes` 0 means unknown."""

    where: str
    parts: tuple[MemoryPart, ...]
    limit_bytes: int
    used_by_others_bytes: int = 0
    estimated: bool = True

    @property
    def total_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    @property
    def fits(self) -> bool | None:
        """None when the limit is unknown."""
        if not self.limit_bytes:
            return None
        return self.total_bytes + self.used_by_others_bytes <= self.limit_bytes


class Plan(msgspec.Struct, frozen=True):
    """Everything decided before the child starts, each with its reason.

    `command` starts the trainer, with `{run}` standing for the run directory; `command_line` is what a
    person types for the same run. `python` and `devices` say why this interpreter and these devices;
    `versions` are of the interpreter and of what it computes with. `rounding` is `none` or the bits of the
    weights that are trained for. `data` is how much there is to learn from, with what was found in it.
    """

    command: tuple[str, ...]
    command_line: tuple[str, ...]
    interpreter: str
    environment: tuple[Variable, ...]
    backend: Decision
    kernel: Decision
    placement: Decision
    precision: Decision
    base: Decision
    memory: MemoryBill | None = None
    total_steps: int = 0
    python: Decision | None = None
    devices: Decision | None = None
    versions: dict[str, str] = {}
    rounding: Decision | None = None
    data: Decision | None = None


class RunRequest(msgspec.Struct, frozen=True):
    """`run.json`: what was asked for and planned.

    `working_directory` is what relative paths in the settings are relative to; itself, as every path in the
    record, relative to the run directory. Empty: where the supervisor was started.
    """

    id: str
    name: str
    task: str
    settings: dict[str, str | int | float | bool]
    plan: Plan
    host: str
    created_at: float
    working_directory: str = ""
    versions: dict[str, str] = {}
    schema: int = SCHEMA_VERSION


class RunState(msgspec.Struct, frozen=True):
    """`state.json`: how the run is doing, as last seen by its supervisor.

    A process is identified by host, boot id, pid and its start time (seconds since the epoch, as the
    system tells it), so that a reused pid is never mistaken for it.
    """

    phase: Phase
    host: str
    boot_id: str
    attempt: int = 1
    pid: int = 0
    pid_started: float = 0.0
    supervisor_pid: int = 0
    supervisor_started: float = 0.0
    started_at: float = 0.0
    heartbeat_at: float = 0.0
    ended_at: float = 0.0
    step: int = 0
    total: int = 0
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    stop_stage: str = ""
    schema: int = SCHEMA_VERSION


class DeviceSample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device at one moment; None where the device does not tell."""

    id: str
    used_bytes: int | None = None
    total_bytes: int | None = None
    utilisation_percent: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None


class SystemSample(msgspec.Struct, frozen=True):
    """One line of `system.jsonl`. CPU use is of the trainer and its children, 100 per core."""

    time: float
    attempt: int
    host_used_bytes: int
    host_total_bytes: int
    process_bytes: int
    process_cpu_percent: float
    devices: tuple[DeviceSample, ...] = ()


class RunFiles:
    """The paths of one run directory."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.request = self.directory / "run.json"
        self.state = self.directory / "state.json"
        self.metrics = self.directory / "metrics.jsonl"
        self.events = self.directory / "events.jsonl"
        self.system = self.directory / "system.jsonl"
        self.log = self.directory / "log.txt"
        self.note = self.directory / "note.txt"
        self.checkpoints = self.directory / "checkpoints"
        self.artifacts = self.directory / "artifacts"
        self.control = self.directory / "control"
        self.stop_request = self.control / "stop"
        self.checkpoint_request = self.control / "checkpoint"

    def recorded(self, path: Path | str) -> str:
        """A path as the record holds it: relative to the run directory, so that it names no machine."""
        return Path(os.path.relpath(path, self.directory.resolve())).as_posix()

    def located(self, recorded: str) -> Path:
        """The file that a recorded path means."""
        return Path(os.path.normpath(self.directory.resolve() / recorded))

    def command_of(self, plan: Plan) -> list[str]:
        """The plan's command as it is started: its program located, `{run}` replaced."""
        command = [part.replace("{run}", str(self.directory)) for part in plan.command]
        if command and os.sep in command[0]:
            command[0] = str(self.located(command[0]))
        return command


def read_request(directory: Path | str) -> RunRequest:
    """The request of a run. Raises InputError when there is none or it cannot be read."""
    path = RunFiles(directory).request
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRequest)
    except FileNotFoundError:
        raise InputError(
            "is not a run directory: it has no run.json",
            where=str(directory),
            remedy="list runs with: needle runs list",
        ) from None
    except (OSError, *UNREADABLE) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None


def read_state(directory: Path | str) -> RunState | None:
    """The last written state; None before the supervisor wrote one or when it is unreadable."""
    try:
        return msgspec.json.decode(RunFiles(directory).state.read_bytes(), type=RunState)
    except (OSError, *UNREADABLE):
        return None


def write_atomically(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replace `path` as a whole: a reader or a crash sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_json(path: Path, record: msgspec.Struct, *, durable: bool = True) -> None:
    """Write one record as indented JSON, atomically."""
    write_atomically(
        path, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n", durable=durable
    )


def json_number(value: float) -> float | int | str:
    """A number as a metrics line holds it: non-finite ones become strings."""
    if isinstance(value, int) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
