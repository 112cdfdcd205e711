"""What is known of a machine, as frozen records that msgspec can encode."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

Status = Literal["works", "broken", "untried", "absent"]


@dataclass(frozen=True)
class DeviceProcess:
    """A process on a device. The name is empty when it runs outside this container."""

    pid: int
    name: str
    used_bytes: int | None


@dataclass(frozen=True)
class Device:
    """One device of a platform, numbered as JAX numbers it: `cuda:0`.

    One that JAX does not see has the name its system's tools give it: `GPU 1`, `MIG 0:2`. `capability` is
    the compute capability, `9.0` on CUDA or `gfx942` on ROCm. None bytes: it does not tell. `uuid` is as
    the driver tells it, `unified` means that its memory is the host's.
    """

    id: str
    platform: str
    kind: str
    index: int
    total_bytes: int | None = None
    used_bytes: int | None = None
    capability: str = ""
    uuid: str = ""
    unified: bool = False
    processes: tuple[DeviceProcess, ...] = ()


@dataclass(frozen=True)
class Backend:
    """One JAX platform in one interpreter.

    works: an operation and its gradient were right. broken: it is here but cannot be used, `fix` says what
    to do. untried: seen by a static hint only. absent: nothing here to try. `hidden` are devices of this
    platform that JAX will not see as things are; `held_by` names the live run that computes on it now.
    """

    platform: str
    status: Status
    devices: tuple[Device, ...] = ()
    reason: str = ""
    fix: str = ""
    bfloat16: bool = False
    hidden: tuple[Device, ...] = ()
    held_by: str = ""


@dataclass(frozen=True)
class Interpreter:
    """A Python that could run training. `packages` holds what matters to JAX: name -> version.

    `problem` says why it cannot run training, `fix` what would change that. `installer` is what brings
    packages into it: `pip`, or without pip `uv` or `ensurepip`.
    """

    path: str
    label: str
    python: str
    packages: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    fix: str = ""
    installer: str = "pip"


@dataclass(frozen=True)
class Host:
    """The machine, with the memory this process may really use."""

    name: str
    cores: int
    memory_total_bytes: int
    memory_available_bytes: int


@dataclass(frozen=True)
class Problem:
    """A finding in plain words, with its fix."""

    title: str
    detail: str
    fix: str


@dataclass(frozen=True)
class Inventory:
    """What this machine has. `backends` are those of `interpreters[0]`, the one in use.

    `elsewhere` has those of the other interpreters, by path. `problems` are findings about the machine, its
    environment and the interpreter in use; `doctor.findings` adds those that follow from the backends.
    `probed_at` is in seconds since the epoch, 0 when nothing was probed.
    """

    host: Host
    interpreters: tuple[Interpreter, ...]
    backends: tuple[Backend, ...]
    problems: tuple[Problem, ...] = ()
    probed_at: float = 0.0
    elsewhere: dict[str, tuple[Backend, ...]] = field(default_factory=dict)

    def backends_of(self, interpreter: Interpreter) -> tuple[Backend, ...]:
        """What is known of each platform in one of these interpreters."""
        if interpreter.path == self.interpreters[0].path:
            return self.backends
        return self.elsewhere.get(interpreter.path, ())

    def with_backends(self, interpreter: Interpreter, backends: tuple[Backend, ...]) -> Inventory:
        """The same machine with other knowledge of one interpreter's platforms."""
        if interpreter.path == self.interpreters[0].path:
            return replace(self, backends=backends)
        return replace(self, elsewhere={**self.elsewhere, interpreter.path: backends})

    def seen_from(self, interpreter: Interpreter) -> Inventory:
        """The same machine with another of its interpreters in use."""
        first, others = self.interpreters[0], [one for one in self.interpreters if one != interpreter]
        if interpreter.path == first.path:
            return self
        elsewhere = {**self.elsewhere, first.path: self.backends}
        return replace(
            self,
            interpreters=(interpreter, *others),
            backends=elsewhere.pop(interpreter.path, ()),
            elsewhere=elsewhere,
        )
