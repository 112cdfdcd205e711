"""Why a trainer ended, in words that a person can act on."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from needle.units import bytes_text


@dataclass(frozen=True)
class Exit:
    """How a process ended: by itself with a code, or by a signal; neither when nobody could tell."""

    code: int | None = None
    signal: int | None = None


@dataclass(frozen=True)
class Evidence:
    """What was seen of a trainer besides its exit; 0 and empty where nothing was.

    `memory_kills` counts the kernel's out-of-memory kills on this machine during the attempt, None where
    the kernel does not tell. `limit_source` is where the memory limit comes from, `disk_full` is about the
    disk of the run directory.
    """

    last_words: str = ""
    peak_bytes: int = 0
    limit_bytes: int = 0
    limit_source: str = ""
    memory_kills: int | None = None
    disk_full: bool = False


_CAUSES = {
    signal.SIGSEGV: "it touched memory not its own, in native code: jaxlib, a plugin or a driver",
    signal.SIGBUS: "a mapped file was cut short while it was read, or the disk or /dev/shm is full",
    signal.SIGILL: "this processor lacks an instruction that jaxlib or a cached program uses; "
    "clear JAX's compilation cache, or install jaxlib on this machine",
    signal.SIGFPE: "a division by zero or the like in native code",
    signal.SIGABRT: "native code gave up",
    signal.SIGTERM: "somebody, a job scheduler or a shutdown ended it",
    signal.SIGINT: "somebody interrupted it",
    signal.SIGHUP: "its terminal or its session went away",
    signal.SIGXCPU: "its limit of processor time was reached (ulimit -t)",
    signal.SIGXFSZ: "its limit of file size was reached (ulimit -f)",
}
_SPOKEN = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)


def explain(end: Exit, evidence: Evidence) -> str:
    """Why it ended, for an end that nobody asked for and that the trainer did not explain."""
    reason = (
        _explain_code(end.code, evidence) if end.signal is None else _explain_signal(end.signal, evidence)
    )
    return f"the disk of the run directory is full; {reason}" if evidence.disk_full else reason


def signal_name(number: int) -> str:
    """`9` -> `SIGKILL`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _explain_signal(number: int, evidence: Evidence) -> str:
    name = signal_name(number)
    if number == signal.SIGKILL:
        return f"{name}: {_explain_kill(evidence)}"
    cause = next((text for known, text in _CAUSES.items() if known == number), "")
    said = f"its last words: {evidence.last_words}" if number in _SPOKEN and evidence.last_words else ""
    return f"{name}: " + "; ".join(part for part in (cause, said) if part) if cause or said else name


def _explain_code(code: int | None, evidence: Evidence) -> str:
    if evidence.last_words:
        return evidence.last_words
    if code is None:
        return "it ended, and the system did not tell how"
    if code > 128 and code - 128 in set(signal.Signals):
        return f"exit code {code}: something it started was ended by {signal_name(code - 128)}"
    return f"exit code {code}, and it said nothing"


def _explain_kill(evidence: Evidence) -> str:
    used = ""
    if evidence.peak_bytes:
        used = f"it used up to {bytes_text(evidence.peak_bytes)}"
        if evidence.limit_bytes:
            source = f" ({evidence.limit_source})" if evidence.limit_source else ""
            used += f" of {bytes_text(evidence.limit_bytes)}{source}"
    if evidence.memory_kills:
        who = "the kernel's out-of-memory killer struck on this machine meanwhile; a smaller batch needs less"
    elif evidence.memory_kills == 0 and evidence.peak_bytes < 0.9 * evidence.limit_bytes:
        who = "somebody, a job scheduler or a memory watchdog; the kernel's out-of-memory killer did nothing"
    else:
        who = "somebody sent it, or the kernel's out-of-memory killer, when memory ran out"
    return "; ".join(part for part in (who, used) if part)
