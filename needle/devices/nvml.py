"""NVIDIA devices as their driver's own library sees them: memory, load, heat, and who is using them.

Needs neither JAX nor CUDA. A question that a device or driver does not answer leaves None, never an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from needle.devices.hints import NVIDIA_NODES, read_text
from needle.devices.records import DeviceProcess
from needle.devices.visible import Entity, jax_ids

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class DeviceUse:
    """One NVIDIA device now; None where it does not tell.

    `id` is `cuda:N` as JAX numbers it; hidden from JAX, it is named as nvidia-smi does: `GPU 1`, `MIG 0:2`.
    """

    id: str
    name: str
    used_bytes: int | None
    total_bytes: int | None
    utilisation_percent: float | None
    temperature_c: float | None
    power_w: float | None
    processes: tuple[DeviceProcess, ...] = ()
    uuid: str = ""


def device_samples(environment: Mapping[str, str] = os.environ) -> list[DeviceUse]:
    """Every NVIDIA device of this machine, in the order of the PCI bus; empty without an NVIDIA driver."""
    library = _library()
    return read_devices(library, environment) if library else []


def driver_version() -> str:
    """The NVIDIA driver's version, `550.54.14`; empty without one."""
    library = _library()
    return _asked(lambda: str(library.nvmlSystemGetDriverVersion())) or "" if library else ""


def read_devices(library: ModuleType, environment: Mapping[str, str]) -> list[DeviceUse]:
    """As `device_samples`, from an initialised pynvml. A card cut into slices is listed by its slices."""
    count = _asked(lambda: int(library.nvmlDeviceGetCount())) or 0
    handles: list[object] = []
    entities: list[Entity] = []
    for card in range(count):
        whole = _asked(partial(_handle, library, card))
        parts = _slices(library, whole) if whole is not None else []
        for number, handle in enumerate(parts or [whole]):
            handles.append(handle)
            name = f"MIG {card}:{number}" if parts else f"GPU {card}"
            entities.append(Entity(name, card, _asked(partial(_uuid, library, handle)) or ""))
    ids = jax_ids(entities, environment)
    return [
        _read_device(library, handle, ids[at], entities[at].uuid)
        for at, handle in enumerate(handles)
        if handle is not None
    ]


_loaded: list[ModuleType | None] = []


def _library() -> ModuleType | None:
    """pynvml, initialised once; None, also once, where there is no NVIDIA driver."""
    if not _loaded:
        _loaded.append(_load())
    return _loaded[0]


def _load() -> ModuleType | None:
    if os.name == "posix" and not any(os.path.exists(node) for node in NVIDIA_NODES):
        return None
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        # No library, a driver that does not match it, no permission: all mean there is nothing to read.
        return None
    return pynvml  # type: ignore[no-any-return]


def _asked(question: Callable[[], Answer]) -> Answer | None:
    """The answer, or None where the driver refuses: NVML raises its own error class for that."""
    try:
        return question()
    except Exception:
        return None


def _handle(library: ModuleType, index: int) -> object:
    return library.nvmlDeviceGetHandleByIndex(index)


def _slices(library: ModuleType, card: object) -> list[object]:
    """The MIG devices that a card was cut into; none where it was not."""
    mode = _asked(lambda: library.nvmlDeviceGetMigMode(card))
    if not mode or not mode[0]:
        return []
    most = _asked(lambda: int(library.nvmlDeviceGetMaxMigDeviceCount(card))) or 0
    found = (_asked(partial(_slice, library, card, number)) for number in range(most))
    return [handle for handle in found if handle is not None]


def _slice(library: ModuleType, card: object, number: int) -> object:
    return library.nvmlDeviceGetMigDeviceHandleByIndex(card, number)


def _uuid(library: ModuleType, handle: object) -> str:
    return str(library.nvmlDeviceGetUUID(handle))


def _read_device(library: ModuleType, handle: object, device_id: str, uuid: str) -> DeviceUse:
    memory = _asked(lambda: library.nvmlDeviceGetMemoryInfo(handle))
    rates = _asked(lambda: library.nvmlDeviceGetUtilizationRates(handle))
    sensor = getattr(library, "NVML_TEMPERATURE_GPU", 0)
    return DeviceUse(
        id=device_id,
        name=_asked(lambda: str(library.nvmlDeviceGetName(handle))) or "NVIDIA GPU",
        used_bytes=int(memory.used) if memory is not None else None,
        total_bytes=int(memory.total) if memory is not None else None,
        utilisation_percent=float(rates.gpu) if rates is not None else None,
        temperature_c=_asked(lambda: float(library.nvmlDeviceGetTemperature(handle, sensor))),
        power_w=_asked(lambda: library.nvmlDeviceGetPowerUsage(handle) / 1000),
        processes=_processes(library, handle),
        uuid=uuid,
    )


def _processes(library: ModuleType, handle: object) -> tuple[DeviceProcess, ...]:
    compute = _asked(lambda: list(library.nvmlDeviceGetComputeRunningProcesses(handle))) or []
    graphics = _asked(lambda: list(library.nvmlDeviceGetGraphicsRunningProcesses(handle))) or []
    by_pid = {int(process.pid): process.usedGpuMemory for process in (*graphics, *compute)}
    return tuple(DeviceProcess(pid, _process_name(library, pid), used) for pid, used in by_pid.items())


def _process_name(library: ModuleType, pid: int) -> str:
    told = _asked(lambda: str(library.nvmlSystemGetProcessName(pid))) or ""
    return os.path.basename(told.split(" ")[0]) or read_text(Path(f"/proc/{pid}/comm")).strip()
