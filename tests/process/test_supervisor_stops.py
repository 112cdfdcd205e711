"""How a run is stopped: asked, then TERM, then KILL, each shown; with real processes."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from needle.runs.control import request_checkpoint, request_stop
from needle.runs.reader import open_run
from needle.runs.record import ENDED_PHASES, RunFiles
from tests.process import supervisor_kit as kits

Wait = Callable[..., None]
SHORT = {"NEEDLE_STOP_GRACE_S": "0.3", "NEEDLE_START_GRACE_S": "0.3", "NEEDLE_TERM_GRACE_S": "0.3"}
LONG = {"NEEDLE_STOP_GRACE_S": "600", "NEEDLE_START_GRACE_S": "600", "NEEDLE_TERM_GRACE_S": "600"}


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[kits.Kit]:
    made = kits.Kit(tmp_path)
    yield made
    made.clean()


def start(kit: kits.Kit, wait_for: Wait, script: str, phase: str = "running", **environment: str) -> Path:
    run = kit.make(script)
    kit.supervise(run, **environment)
    wait_for(lambda: kit.state(run).phase == phase, phase)
    return run


def wait_for_end(kit: kits.Kit, wait_for: Wait, run: Path) -> None:
    wait_for(lambda: kit.state(run).phase in ENDED_PHASES, "the end")


def stages(run: Path) -> list[object]:
    return [event["stage"] for event in open_run(run).events if event["kind"] == "stop"]


def test_a_trainer_that_heeds_the_request_is_stopped(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES, **LONG)
    assert request_stop(run)
    wait_for_end(kit, wait_for, run)
    state = kit.state(run)
    assert (state.phase, state.exit_code, state.reason) == ("stopped", 0, "asked at step 1")
    assert stages(run) == ["asked"]


def test_a_trainer_that_ignores_everything_is_killed_rung_by_rung(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.IGNORES_EVERYTHING, **SHORT)
    request_stop(run)
    wait_for(lambda: kit.state(run).phase == "stopping", "stopping")
    wait_for_end(kit, wait_for, run)
    state = kit.state(run)
    assert (state.phase, state.signal, state.stop_stage) == ("killed", signal.SIGKILL, "kill")
    assert "on request" in state.reason
    assert stages(run) == ["asked", "term", "kill"]


def test_a_trainer_that_heeds_only_term_is_stopped_by_it(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.IGNORES_STOP, **SHORT)
    request_stop(run)
    wait_for_end(kit, wait_for, run)
    state = kit.state(run)
    assert (state.phase, state.signal, state.stop_stage) == ("stopped", signal.SIGTERM, "term")
    assert stages(run) == ["asked", "term"]


def test_while_compiling_the_patience_is_the_short_one(kit: kits.Kit, wait_for: Wait) -> None:
    graces = {**LONG, "NEEDLE_START_GRACE_S": "0.2"}
    run = start(kit, wait_for, kits.NEVER_RUNS, phase="compiling", **graces)
    request_stop(run)
    wait_for_end(kit, wait_for, run)
    assert kit.state(run).phase == "stopped"
    assert stages(run) == ["asked", "term"]


def test_each_request_for_now_climbs_one_rung_at_once(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.IGNORES_EVERYTHING, **LONG)
    request_stop(run)
    wait_for(lambda: kit.state(run).stop_stage == "asked", "asked", within_s=5)
    request_stop(run, now=True)
    wait_for(lambda: kit.state(run).stop_stage == "term", "TERM", within_s=5)
    request_stop(run, now=True)
    wait_for_end(kit, wait_for, run)
    assert kit.state(run).signal == signal.SIGKILL
    assert stages(run) == ["asked", "term", "kill"]


def test_a_request_reaches_the_supervisor_at_once(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES, **LONG)
    asked_at = time.monotonic()
    request_stop(run)
    wait_for(lambda: kit.state(run).phase != "running", "stopping", within_s=5)
    assert time.monotonic() - asked_at < 0.4
    wait_for_end(kit, wait_for, run)


def test_an_empty_file_made_by_hand_is_a_request(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES, **LONG)
    RunFiles(run).stop_request.touch()
    wait_for_end(kit, wait_for, run)
    assert (kit.state(run).phase, stages(run)) == ("stopped", ["asked"])


def test_terminating_the_supervisor_stops_the_run_in_good_order(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES, **LONG)
    os.kill(kit.state(run).supervisor_pid, signal.SIGTERM)
    wait_for_end(kit, wait_for, run)
    assert (kit.state(run).phase, stages(run)) == ("stopped", ["asked"])


def test_a_stopped_process_is_continued_to_hear_of_its_end(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.IGNORES_STOP, **{**LONG, "NEEDLE_STOP_GRACE_S": "0.1"})
    os.kill(kit.state(run).pid, signal.SIGSTOP)
    request_stop(run)
    wait_for_end(kit, wait_for, run)
    assert kit.state(run).signal == signal.SIGTERM


def test_a_run_stopped_before_its_start_never_starts(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.FINISHES)
    assert request_stop(run)
    kit.supervise(run).wait(20)
    assert (kit.state(run).phase, kit.state(run).pid) == ("stopped", 0)
    assert not RunFiles(run).metrics.exists()


def test_the_request_of_an_earlier_attempt_does_not_stop_the_next(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES, **LONG)
    request_stop(run)
    wait_for_end(kit, wait_for, run)
    (run / "go").touch()
    kit.supervise(run).wait(20)
    assert (kit.state(run).attempt, kit.state(run).phase) == (2, "finished")


def test_an_ended_run_takes_no_requests(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.FINISHES)
    kit.supervise(run).wait(20)
    assert not request_stop(run)
    assert not request_checkpoint(run)
    assert not RunFiles(run).stop_request.exists()


def test_a_checkpoint_request_is_seen_once(kit: kits.Kit, wait_for: Wait) -> None:
    script = (
        kits.WRITER
        + "writer.event('phase', phase='running')\nwait_until(writer.checkpoint_requested)\n"
        + "writer.event('checkpoint', step=1, path='x', again=writer.checkpoint_requested())\n"
    )
    run = start(kit, wait_for, script)
    assert request_checkpoint(run)
    wait_for_end(kit, wait_for, run)
    saved = [event for event in open_run(run).events if event["kind"] == "checkpoint"]
    assert [event["again"] for event in saved] == [False]
