"""Asking an interpreter what one platform can do: a short-lived child that may hang, crash or babble.

The child is a process group of its own. Whatever happens, none of it is left: not after an answer, not after
the time limit, not when the parent dies (the child ends by itself).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import IO

import msgspec

from needle.devices import probe
from needle.devices.explain import BOTH_WHEELS_FIX, Circumstances, explain, signal_words, telling_line
from needle.devices.platforms import platform_label, short_path
from needle.devices.records import Backend
from needle.devices.variables import set_aside, split_library_path

TIME_LIMIT_S = 60.0
STOPPED = "the probe was stopped before it answered"
_READ_LIMIT = 1 << 20
_GRACE_S = 5


@dataclass(frozen=True)
class Outcome:
    """A probe's answer. `settled` is False where asking again may well give another: a hang, a crash, a
    device that is full."""

    backend: Backend
    settled: bool = True


def run_probe(
    platform: str,
    python: str,
    *,
    packages: Mapping[str, str],
    driver: str = "",
    environment: Mapping[str, str] = os.environ,
    timeout_s: float = TIME_LIMIT_S,
    installer: str = "pip",
    source: str = "",
) -> Outcome:
    """Probe one platform with one interpreter. Never raises for what the child does."""
    child_environment = probe_environment(platform, environment, packages, timeout_s)
    circumstances = Circumstances(python, driver, child_environment, installer=installer, source=source)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = _start([python, str(Path(probe.__file__)), platform], child_environment, output, errors)
        except OSError as error:
            reason = f"{python} cannot be started: {error.strerror or error}"
            return Outcome(Backend(platform, "broken", reason=reason, fix="choose another interpreter"))
        ended = _wait(process, timeout_s)
        answer, said = _tail(output), _tail(errors)
    if process in _stopped:
        _stopped.discard(process)
        return Outcome(Backend(platform, "untried", reason=STOPPED), settled=False)
    if ended is False:
        return _read(platform, answer) or Outcome(_timed_out(platform, timeout_s), settled=False)
    return _judge(platform, process.returncode, answer, said, circumstances, both_wheels(packages))


def probe_side_by_side(
    platforms: Iterable[str],
    circumstances: Circumstances,
    *,
    packages: Mapping[str, str],
    timeout_s: float = TIME_LIMIT_S,
) -> Iterator[Outcome]:
    """Probe platforms of one interpreter at the same time; each outcome as it comes."""
    answers: SimpleQueue[Outcome] = SimpleQueue()

    def ask(platform: str) -> None:
        # The thread that waits for the answer must get one, whatever happens here.
        try:
            answers.put(
                run_probe(
                    platform,
                    circumstances.python,
                    packages=packages,
                    driver=circumstances.driver,
                    environment=circumstances.environment,
                    timeout_s=timeout_s,
                    installer=circumstances.installer,
                    source=circumstances.source,
                )
            )
        except Exception as error:
            words = f"the probe failed: {error}"
            answers.put(Outcome(Backend(platform, "broken", reason=words), settled=False))

    wanted = tuple(platforms)
    for platform in wanted:
        threading.Thread(target=ask, args=(platform,), name=f"probe-{platform}", daemon=True).start()
    for _ in wanted:
        yield answers.get()


def cancel_probes() -> None:
    """End every probe in flight at once; each is then reported as untried. For a program that is leaving."""
    with _lock:
        _stopped.update(_running)
        for process in _running:
            _kill_group(process)


def probe_environment(
    platform: str, inherited: Mapping[str, str], packages: Mapping[str, str], timeout_s: float = TIME_LIMIT_S
) -> dict[str, str]:
    """The child's whole environment: one platform, no preallocation, nothing that steers it elsewhere."""
    chosen = {name: value for name, value in inherited.items() if not set_aside(name, inherited)}
    chosen.pop("JAX_COMPILATION_CACHE_DIR", None)
    chosen |= {
        "JAX_PLATFORMS": platform,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        "PYTHONUTF8": "1",
        probe.LIMIT_VARIABLE: str(int(timeout_s) + _GRACE_S),
    }
    if platform == "METAL":
        chosen["ENABLE_PJRT_COMPATIBILITY"] = "1"
    if platform == "cuda" and "LD_LIBRARY_PATH" in chosen:
        kept, _ = split_library_path(chosen.pop("LD_LIBRARY_PATH"), packages)
        if kept:
            chosen["LD_LIBRARY_PATH"] = kept
    return chosen


def both_wheels(packages: Mapping[str, str]) -> bool:
    """Whether CUDA and ROCm plugins share this environment, which crashes JAX (row 21)."""
    return all(any(name.startswith(start) for name in packages) for start in ("jax-cuda", "jax-rocm"))


_lock = threading.Lock()
_running: set[subprocess.Popen[bytes]] = set()
_stopped: set[subprocess.Popen[bytes]] = set()


def _start(
    command: list[str], environment: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start the child as the leader of its own group; under the lock, so that `cancel_probes` sees it."""
    with _lock:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
        _running.add(process)
    return process


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Whether the child ended in time. Its whole group is killed before this returns or raises."""
    try:
        process.wait(timeout_s)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        with _lock:
            _running.discard(process)
        _kill_group(process)
        # A process stuck inside a driver cannot be killed before the driver lets go: it is not waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """The child leads its own group, so its pid names the group even after it ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _READ_LIMIT))
    return file.read().decode("utf-8", errors="replace")


def _read(platform: str, answer: str) -> Outcome | None:
    """The report in the child's output: its last line that is one. Other lines are noise of plugins."""
    for line in reversed(answer.splitlines()):
        try:
            backend = msgspec.json.decode(line, type=Backend)
        except msgspec.MsgspecError:
            continue
        if backend.platform == platform and backend.status != "untried":
            return Outcome(backend)
    return None


def _judge(
    platform: str, status: int, answer: str, said: str, circumstances: Circumstances, both: bool
) -> Outcome:
    outcome = _read(platform, answer)
    if outcome is None:
        return _without_answer(platform, status, answer, said, circumstances, both)
    backend = outcome.backend
    if backend.status != "works":
        # What a library wrote before JAX gave up says more than JAX's last words (rows 22 and 23).
        told = explain(platform, f"{backend.reason}\n{said}", circumstances)
        if told is None:
            return Outcome(backend, settled=False)
        return Outcome(replace(backend, reason=told.reason, fix=told.fix), settled=not told.may_pass)
    if status < 0:
        note = f"{backend.reason}; afterwards its process ended by {signal_words(-status)}"
        return Outcome(replace(backend, reason=note))
    return outcome


def _without_answer(
    platform: str, status: int, answer: str, said: str, circumstances: Circumstances, both: bool
) -> Outcome:
    told = explain(platform, said, circumstances)
    if told:
        backend = Backend(platform, "broken", reason=told.reason, fix=told.fix)
        return Outcome(backend, settled=not told.may_pass)
    last = telling_line(said)
    fix = f"see for yourself: {short_path(circumstances.python)} -m needle.devices.probe {platform}"
    if status < 0:
        words = f"JAX died while {platform_label(platform)} was tried: {signal_words(-status)}"
        if both:
            words, fix = f"{words}; both cuda and rocm wheels are installed", BOTH_WHEELS_FIX
    else:
        wrong = "no answer" if not answer.strip() else "an answer that makes no sense"
        words = f"the probe gave {wrong} (status {status})"
    return Outcome(
        Backend(platform, "broken", reason=f"{words}: {last}" if last else words, fix=fix), settled=False
    )


def _timed_out(platform: str, timeout_s: float) -> Backend:
    look = {"cuda": "nvidia-smi", "rocm": "rocm-smi", "tpu": "ls -l /dev/accel* /dev/vfio"}.get(platform)
    return Backend(
        platform,
        "broken",
        reason=f"no answer within {timeout_s:g} s: its driver hangs or the device is busy; probe ended",
        fix=f"see whether the driver answers: {look}; then probe again" if look else "probe again",
    )
