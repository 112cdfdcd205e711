"""A stand-in for pynvml with two cards, and with the refusals that real drivers make."""

import os
from types import SimpleNamespace

GIB = 1 << 30


class RefusedError(Exception):
    """Stands for NVMLError."""


def _process_name(pid):
    if pid != os.getpid():
        raise RefusedError("not found")
    return "/usr/bin/python3 train.py"


def driver(refuses=(), lost=(), lacks=()):
    """A library with two cards. It refuses some questions, lost some cards, and lacks some functions."""

    def handle(index):
        if index in lost:
            raise RefusedError("GPU is lost")
        return index

    processes = [
        SimpleNamespace(pid=os.getpid(), usedGpuMemory=GIB),
        SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None),
    ]
    functions = {
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": handle,
        "nvmlDeviceGetUUID": lambda card: f"GPU-{card}aaa-bbbb",
        "nvmlDeviceGetName": lambda card: "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": lambda card: SimpleNamespace(total=139 * GIB, used=(card + 1) * GIB),
        "nvmlDeviceGetUtilizationRates": lambda card: SimpleNamespace(gpu=87, memory=12),
        "nvmlDeviceGetTemperature": lambda card, sensor: 61,
        "nvmlDeviceGetPowerUsage": lambda card: 421_500,
        "nvmlDeviceGetComputeRunningProcesses": lambda card: processes,
        "nvmlDeviceGetGraphicsRunningProcesses": lambda card: [],
        "nvmlSystemGetProcessName": _process_name,
    }

    def refuse(*_):
        raise RefusedError("not supported")

    functions |= dict.fromkeys(refuses, refuse)
    return SimpleNamespace(**{name: known for name, known in functions.items() if name not in lacks})


def sliced(library):
    """The second card cut into two slices, at places 0 and 3 of at most seven."""
    there = (0, 3)

    def part(card, number):
        if number not in there:
            raise RefusedError("not found")
        return 10 * card + number

    library.nvmlDeviceGetMigMode = lambda card: [card, card]
    library.nvmlDeviceGetMaxMigDeviceCount = lambda card: 7
    library.nvmlDeviceGetMigDeviceHandleByIndex = part
    library.nvmlDeviceGetUUID = lambda handle: f"MIG-{handle}" if handle >= 10 else f"GPU-{handle}aaa"
    library.nvmlDeviceGetName = lambda handle: "NVIDIA H200" + (" MIG 1g.18gb" if handle >= 10 else "")
    return library
