"""Who holds the TPU of this machine: it serves one process at a time, and says so badly (rows 11 and 13)."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from needle.devices.hints import read_text
from needle.devices.records import DeviceProcess

LOCK_FILE = "tmp/libtpu_lockfile"
_NODES = ("/dev/accel", "/dev/vfio/")


@dataclass(frozen=True)
class TpuHolders:
    """Processes seen with a TPU open; `lock_owner` is the user id of libtpu's lock file, None without one."""

    processes: tuple[DeviceProcess, ...] = ()
    lock_owner: int | None = None


def tpu_holders(root: Path) -> TpuHolders:
    """Look through the open files of every process that may be looked at: others' need root."""
    holders = []
    for process in sorted((root / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        if any(link.startswith(_NODES) for link in _open_files(process / "fd")):
            name = read_text(process / "comm").strip()
            holders.append(DeviceProcess(int(process.name), name, None))
    return TpuHolders(tuple(holders), _owner(root / LOCK_FILE))


def _open_files(directory: Path) -> list[str]:
    """Where its descriptors lead; none for a process that ended or is another user's."""
    links = []
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            with contextlib.suppress(OSError):
                links.append(os.readlink(directory / name))
    return links


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None
