"""Samples of host and devices, in a thread of its own: a driver that hangs must not hold up a stop."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping

import msgspec
import psutil

from needle.runs.record import DeviceSample, SystemSample

EVERY_S = 2.0
_FAMILY_EVERY_S = 10.0


class Sampler:
    """Measures every two seconds and hands each sample to `record`, until `stop`.

    `peak_bytes`, `limit_bytes` and `limit_source` say how close the trainer came to the host's limit.
    """

    def __init__(
        self, pid: int, attempt: int, environment: Mapping[str, str], record: Callable[[bytes], None]
    ) -> None:
        self.peak_bytes = 0
        self.limit_bytes = 0
        self.limit_source = ""
        self.problem = ""
        self._family = Family(pid)
        self._attempt = attempt
        self._environment = environment
        self._record = record
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        """Begin to measure."""
        self._thread.start()

    def stop(self) -> None:
        """End; a driver that hangs is not waited for."""
        self._over.set()
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while True:
            try:
                self._record(msgspec.json.encode(self._sample()))
            except Exception as error:
                # One bad sample is a gap in a chart; the reason is kept for the record.
                self.problem = f"{type(error).__name__}: {error}"
            if self._over.wait(EVERY_S):
                return

    def _sample(self) -> SystemSample:
        # Loaded here: this room's writers and readers do without it.
        from needle.devices.memory import device_samples, host_memory

        host = host_memory()
        process_bytes, cpu_percent = self._family.measure()
        self.peak_bytes = max(self.peak_bytes, process_bytes)
        self.limit_bytes, self.limit_source = host.total_bytes, host.limit_source
        return SystemSample(
            time=round(time.monotonic() - self._began, 3),
            attempt=self._attempt,
            host_used_bytes=host.used_bytes,
            host_total_bytes=host.total_bytes,
            process_bytes=process_bytes,
            process_cpu_percent=round(cpu_percent, 1),
            devices=tuple(
                DeviceSample(
                    id=use.id,
                    used_bytes=use.used_bytes,
                    total_bytes=use.total_bytes,
                    utilisation_percent=use.utilisation_percent,
                    temperature_c=use.temperature_c,
                    power_w=use.power_w,
                )
                for use in device_samples(self._environment)
            ),
        )


class Family:
    """A process and what it started. Looking for new children reads every process, so it is done rarely."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._members: list[psutil.Process] = [self._root]
        self._looked_at = -_FAMILY_EVERY_S
        self._measured_at = time.monotonic()
        self._cpu_s: dict[int, float] = {}

    def measure(self) -> tuple[int, float]:
        """Resident bytes, and CPU use since the last measurement in percent of one core."""
        now = time.monotonic()
        if now - self._looked_at >= _FAMILY_EVERY_S:
            self._looked_at = now
            self._members = [self._root, *self._children()]
        resident, before, self._cpu_s = 0, self._cpu_s, {}
        for member in self._members:
            try:
                resident += member.memory_info().rss
                times = member.cpu_times()
            except psutil.Error:
                continue
            self._cpu_s[member.pid] = times.user + times.system
        used_s = sum(spent - before.get(pid, spent) for pid, spent in self._cpu_s.items())
        elapsed_s, self._measured_at = max(1e-3, now - self._measured_at), now
        return resident, 100 * max(0.0, used_s) / elapsed_s

    def _children(self) -> list[psutil.Process]:
        """What the root started; nothing when it has just ended."""
        try:
            return list(self._root.children(recursive=True))
        except psutil.NoSuchProcess:
            return []


def memory_kills() -> int | None:
    """How often the kernel's out-of-memory killer struck since boot; None where it does not tell."""
    try:
        with open("/proc/vmstat") as file:
            found = [line for line in file if line.startswith("oom_kill ")]
    except OSError:
        return None
    return int(found[0].split()[1]) if found else None


def group_members(group: int) -> list[int]:
    """The living processes of a process group, zombies left out."""
    members = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
        except (OSError, psutil.Error):
            continue
    return members
