"""Host memory as this process may really use it, and NVIDIA devices as NVML sees them.

In a container or a batch job the limit of a control group counts, not the machine's memory: a program that
believes the machine is killed without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from needle.devices.hints import read_text
from needle.devices.nvml import DeviceUse, device_samples
from needle.devices.records import DeviceProcess

MACHINE = "machine"
_NO_LIMIT = 1 << 60


@dataclass(frozen=True)
class HostMemory:
    """Bytes this process may use. `limit_source` is `machine`, or names the control group that limits."""

    total_bytes: int
    available_bytes: int
    used_bytes: int
    limit_source: str
    machine_bytes: int


@dataclass(frozen=True)
class _GroupLimit:
    limit_bytes: int
    used_bytes: int
    source: str


def host_memory(root: Path = Path("/")) -> HostMemory:
    """The smaller of what the machine and the control groups of this process leave. Reads below `root`."""
    total, available = _machine_memory(root)
    limits = [limit for limit in _group_limits(root) if limit.limit_bytes < total]
    if not limits:
        return HostMemory(total, available, total - available, MACHINE, total)
    tightest = min(limits, key=lambda limit: limit.limit_bytes - limit.used_bytes)
    smallest = min(limits, key=lambda limit: limit.limit_bytes)
    left = max(0, tightest.limit_bytes - tightest.used_bytes)
    free = min(available, left, smallest.limit_bytes)
    return HostMemory(
        smallest.limit_bytes, free, smallest.limit_bytes - free, smallest.source, machine_bytes=total
    )


def _machine_memory(root: Path) -> tuple[int, int]:
    """(total, available) from /proc/meminfo; from psutil on systems without it."""
    found: dict[str, int] = {}
    for line in read_text(root / "proc/meminfo").splitlines():
        key, _, rest = line.partition(":")
        if key in ("MemTotal", "MemAvailable"):
            found[key] = int(rest.split()[0]) * 1024
    if len(found) == 2:
        return found["MemTotal"], found["MemAvailable"]
    import psutil

    memory = psutil.virtual_memory()
    return memory.total, memory.available


def _group_limits(root: Path) -> list[_GroupLimit]:
    """Every limit on the way from this process's groups to the root, of either version."""
    limits: list[_GroupLimit] = []
    for line in read_text(root / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            for mount in ("sys/fs/cgroup", "sys/fs/cgroup/unified"):
                limits += _walk(root / mount, path, _read_v2)
        elif "memory" in controllers.split(","):
            limits += _walk(root / "sys/fs/cgroup/memory", path, _read_v1)
    return limits


def _walk(mount: Path, path: str, read: Callable[[Path], _GroupLimit | None]) -> list[_GroupLimit]:
    """Inside a container the path may be the host's and not exist here; the mount's root then counts."""
    group = mount / path.lstrip("/")
    if ".." in group.parts:
        group = mount
    groups = [group, *group.parents]
    inside = [one for one in groups if one == mount or mount in one.parents]
    return [limit for one in inside if (limit := read(one)) is not None]


def _read_v2(group: Path) -> _GroupLimit | None:
    limit = _number(group / "memory.max")
    if limit is None:
        return None
    used = _number(group / "memory.current") or 0
    reclaimable = _statistic(group / "memory.stat", "inactive_file")
    return _GroupLimit(limit, max(0, used - reclaimable), f"control group limit {_named(group)}/memory.max")


def _read_v1(group: Path) -> _GroupLimit | None:
    limit = _number(group / "memory.limit_in_bytes")
    if limit is None or limit >= _NO_LIMIT:
        return None
    used = _number(group / "memory.usage_in_bytes") or 0
    reclaimable = _statistic(group / "memory.stat", "total_inactive_file")
    source = f"control group limit {_named(group)}/memory.limit_in_bytes"
    return _GroupLimit(limit, max(0, used - reclaimable), source)


def _named(group: Path) -> str:
    """The group's path as on the machine, whatever root it was read below."""
    parts = group.parts
    return "/" + "/".join(parts[parts.index("sys") :]) if "sys" in parts else str(group)


def _number(path: Path) -> int | None:
    """A file's number; None for `max`, for none and for nonsense."""
    text = read_text(path).strip()
    return int(text) if text.isdigit() else None


def _statistic(path: Path, name: str) -> int:
    for line in read_text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0


__all__ = ["MACHINE", "DeviceProcess", "DeviceUse", "HostMemory", "device_samples", "host_memory"]
