"""The state of a run as derived from its record and from what lives."""

import subprocess
import sys

import pytest

from needle.runs.events import Told
from needle.runs.liveness import alive, boot_id, host_name, start_time
from needle.runs.record import RunState
from needle.runs.state import Liveness, Progress, Status, observe

NOW = 10_000.0
BOTH = Liveness(True, True)
TRAINER_ONLY = Liveness(True, False)
NEITHER = Liveness(False, False)
AFAR = Liveness(None, None)


def state(phase: str = "running", **fields: object) -> RunState:
    known: dict[str, object] = {
        "host": "h",
        "boot_id": "b",
        "pid": 7,
        "started_at": NOW - 1000,
        "heartbeat_at": NOW,
    }
    return RunState(phase=phase, **{**known, **fields})  # type: ignore[arg-type]


def status(
    recorded: RunState | None,
    liveness: Liveness = BOTH,
    told: Told = Told(attempt=1, phase="running"),  # noqa: B008
    last_at: float = NOW - 1,
    step_s: float | None = None,
    created_at: float = NOW - 2000,
) -> Status:
    return observe(recorded, liveness, told, Progress(last_at, step_s), created_at=created_at, now=NOW)


@pytest.mark.parametrize("phase", ["finished", "stopped", "failed", "killed", "lost"])
def test_a_recorded_end_is_final(phase: str) -> None:
    assert status(state(phase, reason="so"), NEITHER) == Status(phase, "so")  # type: ignore[arg-type]


@pytest.mark.parametrize("phase", ["starting", "compiling", "running", "stopping"])
def test_a_supervised_run_is_in_its_recorded_phase(phase: str) -> None:
    assert status(state(phase)) == Status(phase)  # type: ignore[arg-type]


def test_a_dead_trainer_is_for_its_living_supervisor_to_record() -> None:
    assert status(state(), Liveness(False, True)).phase == "running"


@pytest.mark.parametrize(
    ("silent_s", "step_s", "stalled"),
    [
        (59, None, False),
        (61, None, True),
        (61, 5.9, True),
        (61, 6.2, False),
        (199, 20, False),
        (201, 20, True),
    ],
)
def test_stalled_is_ten_steps_and_at_least_a_minute_without_one(
    silent_s: float, step_s: float | None, stalled: bool
) -> None:
    found = status(state(), last_at=NOW - silent_s, step_s=step_s)
    assert (found.stalled, found.phase) == (stalled, "running")
    assert found.label == ("stalled" if stalled else "running")
    assert ("no step for" in found.reason) == stalled


@pytest.mark.parametrize("phase", ["starting", "compiling", "stopping"])
def test_only_a_running_run_stalls(phase: str) -> None:
    assert not status(state(phase), last_at=0.0).stalled


def test_a_fresh_attempt_is_not_stalled_by_the_silence_before_it() -> None:
    assert not status(state(started_at=NOW - 5), last_at=NOW - 5000).stalled


def test_a_trainer_that_outlived_its_supervisor_is_running_unsupervised() -> None:
    found = status(state("compiling"), TRAINER_ONLY)
    assert (found.phase, found.supervised, found.ended) == ("running", False, False)
    assert "supervisor is gone" in found.reason


def test_a_trainer_that_ended_without_supervisor_has_the_end_it_told() -> None:
    told = Told(attempt=1, outcome="failed", reason="no memory")
    assert status(state(), NEITHER, told) == Status("failed", "no memory", supervised=False)


def test_the_end_of_an_earlier_attempt_is_not_this_ones() -> None:
    assert status(state(attempt=2), NEITHER, Told(attempt=1, outcome="finished")).phase == "lost"


def test_both_dead_without_a_word_is_lost() -> None:
    found = status(state(), NEITHER)
    assert (found.phase, found.supervised) == ("lost", False)
    assert "gone" in found.reason


def test_a_restart_of_the_machine_is_named() -> None:
    assert "restarted" in status(state(), Liveness(False, False, rebooted=True)).reason


def test_a_supervisor_that_died_before_the_start_is_named() -> None:
    assert "before the trainer started" in status(state("starting", pid=0), NEITHER).reason


def test_a_run_elsewhere_lives_as_long_as_its_heartbeat() -> None:
    assert status(state(), AFAR).phase == "running"
    assert status(state(heartbeat_at=NOW - 50), AFAR, last_at=0).phase == "running"
    silent = status(state(heartbeat_at=NOW - 70), AFAR, last_at=0)
    assert (silent.phase, "no sign of life from h" in silent.reason) == ("lost", True)


def test_a_run_elsewhere_whose_supervisor_died_lives_as_long_as_it_steps() -> None:
    assert status(state(heartbeat_at=NOW - 700), AFAR, last_at=NOW - 5).phase == "running"
    told = Told(attempt=1, outcome="finished")
    assert status(state(heartbeat_at=NOW - 700), AFAR, told, last_at=NOW - 500).phase == "finished"


def test_without_a_state_a_new_run_is_queued_and_an_old_one_lost() -> None:
    nothing = Told()
    assert status(None, NEITHER, nothing, 0.0, created_at=NOW - 3).phase == "queued"
    assert status(None, NEITHER, nothing, 0.0, created_at=NOW - 300).phase == "lost"


def test_a_program_that_only_writes_metrics_runs_as_long_as_it_does() -> None:
    assert status(None, NEITHER, Told(), NOW - 5).phase == "running"
    assert status(None, NEITHER, Told(), NOW - 500).phase == "lost"
    assert status(None, NEITHER, Told(outcome="finished"), NOW - 500).phase == "finished"


def test_identity_needs_pid_start_time_and_boot() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = start_time(child.pid)
        boot, _, namespace = boot_id().partition("/")
        assert alive(child.pid, started, boot_id(), host_name()) is True
        assert alive(child.pid, started - 60, boot_id(), host_name()) is False
        assert alive(child.pid, started, "another-boot/1", host_name()) is False
        assert alive(child.pid, started, "another-boot/1", "another-host") is None
        assert alive(child.pid, started, f"{boot}/{int(namespace or 1) + 1}", "container") is None
        child.communicate(b"\n")
    assert alive(child.pid, started, boot_id(), host_name()) is False
    assert alive(0, 0.0, boot_id(), host_name()) is False
