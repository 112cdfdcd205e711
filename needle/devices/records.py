"""What is known of a machine, as frozen records that msgspec can encode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Status = Literal["works", "broken", "untried", "absent"]


@dataclass(frozen=True)
class Device:
    """One device of a platform, numbered as JAX numbers it: `cuda:0`.

    `capability` is the compute capability, `9.0` on CUDA or `gfx942` on ROCm. None bytes: it does not tell.
    """

    id: str
    platform: str
    kind: str
    index: int
    total_bytes: int | None = None
    used_bytes: int | None = None
    capability: str = ""


@dataclass(frozen=True)
class Backend:
    """One JAX platform in one interpreter.

    works: an operation and its gradient were right. broken: it is here but cannot be used, `fix` says what
    to do. untried: seen by a static hint only. absent: nothing here to try.
    """

    platform: str
    status: Status
    devices: tuple[Device, ...] = ()
    reason: str = ""
    fix: str = ""
    bfloat16: bool = False


@dataclass(frozen=True)
class Interpreter:
    """A Python that could run training. `packages` holds what matters to JAX: name -> version."""

    path: str
    label: str
    python: str
    packages: dict[str, str] = field(default_factory=dict)
    problem: str = ""


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

    `problems` are findings about the machine and its environment; `doctor.findings` adds those that follow
    from the backends. `probed_at` is in seconds since the epoch, 0 when nothing was probed.
    """

    host: Host
    interpreters: tuple[Interpreter, ...]
    backends: tuple[Backend, ...]
    problems: tuple[Problem, ...] = ()
    probed_at: float = 0.0
