"""Is that process really there? Identity is host, boot, pid and start time; a zombie is dead."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess

import psutil

# Start times come from the boot time, which the kernel tells in whole seconds and may move by one.
_START_TOLERANCE_S = 2.0


def alive(pid: int, started: float, boot: str, host: str) -> bool | None:
    """Whether the process with this identity runs; None when that cannot be seen from here."""
    here = boot_id()
    if boot != here:
        if _boot_only(boot) == _boot_only(here):
            return None  # another container of this machine: its pids are not ours
        return False if host == host_name() else None
    return pid > 0 and _matches(pid, started)


def start_time(pid: int) -> float:
    """When a process started, in seconds since the epoch; 0 when there is none."""
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return 0.0


def host_name() -> str:
    """The name of this machine, as runs record it."""
    return socket.gethostname()


@functools.cache
def boot_id() -> str:
    """What changes when pids lose their meaning: the machine's boot and, on Linux, the pid namespace."""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return f"{psutil.boot_time():.0f}"


def _matches(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - started) > _START_TOLERANCE_S:
            return False
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False


def _boot_only(boot: str) -> str:
    return boot.partition("/")[0]
