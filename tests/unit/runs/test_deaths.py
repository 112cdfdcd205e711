"""Why a trainer ended, in words."""

import signal

import pytest

from needle.runs.deaths import Evidence, Exit, explain

GIB = 1 << 30


def test_a_kill_with_kernel_kills_meanwhile_names_the_memory() -> None:
    reason = explain(Exit(signal=9), Evidence(peak_bytes=15 * GIB, limit_bytes=16 * GIB, memory_kills=1))
    assert "out-of-memory killer struck" in reason
    assert "15.0 GiB of 16.0 GiB" in reason
    assert "smaller batch" in reason


def test_a_kill_without_kernel_kills_and_with_memory_to_spare_was_somebody() -> None:
    reason = explain(Exit(signal=9), Evidence(peak_bytes=1 * GIB, limit_bytes=16 * GIB, memory_kills=0))
    assert "somebody" in reason
    assert "did nothing" in reason


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(),
        Evidence(peak_bytes=1 * GIB, limit_bytes=16 * GIB, memory_kills=None),
        Evidence(peak_bytes=15 * GIB, limit_bytes=16 * GIB, memory_kills=0),
    ],
)
def test_a_kill_that_nothing_explains_may_have_been_memory(evidence: Evidence) -> None:
    assert "or the kernel's out-of-memory killer" in explain(Exit(signal=9), evidence)


def test_the_source_of_the_limit_is_named() -> None:
    evidence = Evidence(peak_bytes=GIB, limit_bytes=2 * GIB, limit_source="cgroup /job")
    assert "2.0 GiB (cgroup /job)" in explain(Exit(signal=9), evidence)


@pytest.mark.parametrize(
    "number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGFPE]
)
def test_a_native_crash_has_its_name_its_cause_and_the_last_words(number: signal.Signals) -> None:
    reason = explain(Exit(signal=number), Evidence(last_words="loading plugin"))
    assert reason.startswith(f"{number.name}: ")
    assert "last words: loading plugin" in reason


def test_an_illegal_instruction_says_what_to_do() -> None:
    assert "clear JAX's compilation cache" in explain(Exit(signal=signal.SIGILL), Evidence())


def test_a_signal_without_explanation_is_still_named() -> None:
    assert explain(Exit(signal=signal.SIGUSR2), Evidence()) == "SIGUSR2"
    assert explain(Exit(signal=200), Evidence()) == "signal 200"


def test_a_full_disk_comes_first() -> None:
    reason = explain(Exit(code=1), Evidence(last_words="OSError", disk_full=True))
    assert reason == "the disk of the run directory is full; OSError"


def test_a_failure_is_its_last_words_or_its_code() -> None:
    assert explain(Exit(code=1), Evidence(last_words="KeyError: 'x'")) == "KeyError: 'x'"
    assert explain(Exit(code=3), Evidence()) == "exit code 3, and it said nothing"
    assert "SIGKILL" in explain(Exit(code=137), Evidence())
