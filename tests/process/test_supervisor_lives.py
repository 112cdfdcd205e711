"""Who lives and who does not: lost, unsupervised and detached runs, with real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from needle.errors import InputError
from needle.runs.control import request_stop
from needle.runs.index import remove_run
from needle.runs.liveness import alive, boot_id, host_name, start_time
from needle.runs.record import ENDED_PHASES, RunFiles, write_json
from needle.runs.state import observe_directory
from tests.process import supervisor_kit as kits

Wait = Callable[..., None]
SUPERVISOR_LIMIT_BYTES = 25_000_000


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[kits.Kit]:
    made = kits.Kit(tmp_path)
    yield made
    made.clean()


def start(kit: kits.Kit, wait_for: Wait, script: str) -> Path:
    run = kit.make(script)
    kit.supervise(run)
    wait_for(lambda: kit.state(run).phase == "running", "running")
    return run


def kill_supervisor(kit: kits.Kit, wait_for: Wait, run: Path) -> None:
    pid = kit.state(run).supervisor_pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: observe_directory(run).supervised is False, "the supervisor's death")


def test_a_run_whose_processes_are_both_killed_is_lost(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.IGNORES_STOP)
    state = kit.state(run)
    os.kill(state.supervisor_pid, signal.SIGKILL)
    os.kill(state.pid, signal.SIGKILL)
    wait_for(lambda: observe_directory(run).phase == "lost", "lost", within_s=5)
    assert kit.state(run).phase == "running"
    assert "resume" in observe_directory(run).reason


def test_a_trainer_without_its_supervisor_is_running_and_then_finished(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES)
    kill_supervisor(kit, wait_for, run)
    status = observe_directory(run)
    assert (status.phase, status.supervised) == ("running", False)
    (run / "go").touch()
    wait_for(lambda: observe_directory(run).ended, "the end")
    assert observe_directory(run).phase == "finished"


def test_a_trainer_without_its_supervisor_still_hears_a_stop_request(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES)
    kill_supervisor(kit, wait_for, run)
    request_stop(run)
    wait_for(lambda: observe_directory(run).ended, "the end")
    assert observe_directory(run).phase == "stopped"


def test_now_ends_a_trainer_that_has_no_supervisor_to_do_it(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.IGNORES_EVERYTHING)
    kill_supervisor(kit, wait_for, run)
    request_stop(run, now=True)
    assert observe_directory(run).phase == "running"
    request_stop(run, now=True)
    wait_for(lambda: observe_directory(run).phase == "lost", "its death", within_s=5)


def test_a_living_trainer_keeps_a_second_attempt_from_starting(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES)
    kill_supervisor(kit, wait_for, run)
    assert kit.supervise(run).wait(10) == 2
    assert kit.state(run).attempt == 1


def test_a_hangup_reaches_neither_supervisor_nor_trainer(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES)
    state = kit.state(run)
    assert os.getsid(state.supervisor_pid) == state.supervisor_pid
    for pid in (state.supervisor_pid, state.pid):
        os.kill(pid, signal.SIGHUP)
    heartbeat = state.heartbeat_at
    wait_for(lambda: kit.state(run).heartbeat_at > heartbeat + 1, "another heartbeat")
    assert kit.state(run).phase == "running"
    (run / "go").touch()
    wait_for(lambda: kit.state(run).phase in ENDED_PHASES, "the end")
    assert kit.state(run).phase == "finished"


def test_a_reused_pid_is_not_taken_for_the_run(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.FINISHES)
    kit.supervise(run).wait(20)
    own = os.getpid()
    stale = msgspec.structs.replace(
        kit.state(run), phase="running", pid=own, supervisor_pid=own, pid_started=1.0, supervisor_started=1.0
    )
    RunFiles(run).events.unlink()
    write_json(RunFiles(run).state, stale)
    assert observe_directory(run).phase == "lost"
    true = msgspec.structs.replace(stale, pid_started=start_time(own))
    write_json(RunFiles(run).state, true)
    assert observe_directory(run).phase == "running"


def test_a_zombie_is_dead(wait_for: Wait) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    started = start_time(child.pid)
    wait_for(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE, "a zombie")
    assert alive(child.pid, started, boot_id(), host_name()) is False
    child.wait()


def test_a_living_run_is_not_deleted(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES)
    with pytest.raises(InputError, match="running"):
        remove_run(run)
    (run / "go").touch()
    wait_for(lambda: observe_directory(run).ended, "the end")
    remove_run(run)
    assert not run.exists()


def test_the_supervisor_stays_small_and_loads_no_numpy(kit: kits.Kit, wait_for: Wait) -> None:
    run = start(kit, wait_for, kits.COOPERATES)
    supervisor = psutil.Process(kit.state(run).supervisor_pid)
    wait_for(lambda: RunFiles(run).system.exists(), "the first sample")
    assert supervisor.memory_info().rss < SUPERVISOR_LIMIT_BYTES
    loaded = {os.path.basename(mapped.path) for mapped in supervisor.memory_maps()}
    assert not [name for name in loaded if "numpy" in name or "multiarray" in name or "jaxlib" in name]
    (run / "go").touch()
    wait_for(lambda: kit.state(run).phase in ENDED_PHASES, "the end")
