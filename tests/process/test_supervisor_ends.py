"""How the end of a trainer is recorded, with real processes."""

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from needle.runs.reader import RunReader, open_run
from needle.runs.record import ENDED_PHASES, RunFiles, Variable, read_state
from needle.runs.state import observe_directory
from tests.process import supervisor_kit as kits

Wait = Callable[..., None]


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[kits.Kit]:
    made = kits.Kit(tmp_path)
    yield made
    made.clean()


def has_ended(kit: kits.Kit, run: Path) -> Callable[[], bool]:
    return lambda: kit.state(run).phase in ENDED_PHASES


def test_a_trainer_that_does_its_work_is_finished(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.FINISHES)
    supervisor = kit.supervise(run)
    wait_for(has_ended(kit, run), "the end")
    state = kit.state(run)
    assert (state.phase, state.exit_code, state.signal, state.reason) == ("finished", 0, None, "")
    assert (state.step, state.total, state.attempt) == (5, 5, 1)
    assert supervisor.wait(10) == 0


def test_the_reason_of_a_failure_is_the_trainers_own(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(
        kits.WRITER + "writer.event('end', outcome='failed', reason='the GPU is full')\nraise SystemExit(1)"
    )
    kit.supervise(run)
    wait_for(has_ended(kit, run), "the end")
    assert (kit.state(run).phase, kit.state(run).reason) == ("failed", "the GPU is full")
    assert kit.state(run).exit_code == 1


def test_without_words_of_its_own_the_reason_is_the_exception(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make("print('loading')\nraise ValueError('no column tokens')")
    kit.supervise(run)
    wait_for(has_ended(kit, run), "the end")
    assert (kit.state(run).phase, kit.state(run).reason) == ("failed", "ValueError: no column tokens")


def test_kill_9_of_the_trainer_shows_killed_within_five_seconds(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.IGNORES_STOP)
    kit.supervise(run)
    wait_for(lambda: kit.state(run).phase == "running", "running")
    os.kill(kit.state(run).pid, signal.SIGKILL)
    wait_for(has_ended(kit, run), "the end", within_s=5)
    state = kit.state(run)
    assert (state.phase, state.signal, state.exit_code) == ("killed", signal.SIGKILL, None)
    assert "SIGKILL" in state.reason
    assert "out-of-memory" in state.reason
    assert "used up to" in state.reason


def test_a_crash_in_native_code_is_named(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(
        "import os, signal\nprint('calling the plugin', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)"
    )
    kit.supervise(run)
    wait_for(has_ended(kit, run), "the end")
    assert kit.state(run).phase == "killed"
    assert kit.state(run).reason.startswith("SIGSEGV: ")
    assert "calling the plugin" in kit.state(run).reason


def test_a_missing_interpreter_is_a_failure_with_a_reason(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.FINISHES, program="/nowhere/bin/python")
    supervisor = kit.supervise(run)
    wait_for(has_ended(kit, run), "the end")
    assert kit.state(run).phase == "failed"
    assert "/nowhere/bin/python" in kit.state(run).reason
    assert supervisor.wait(10) == 0


def test_an_unreadable_request_is_a_failure_with_a_reason(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.FINISHES)
    RunFiles(run).request.write_text('{"id": ')
    kit.supervise(run)
    wait_for(has_ended(kit, run), "the end")
    assert kit.state(run).phase == "failed"
    assert "run.json" in kit.state(run).reason


def test_what_the_trainer_left_behind_is_ended_too(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(
        kits.WRITER
        + "import subprocess\n"
        + "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        + "(run / 'child').write_text(str(child.pid))\nos._exit(0)"
    )
    supervisor = kit.supervise(run)
    assert supervisor.wait(20) == 0
    child = int((run / "child").read_text())
    wait_for(lambda: not _runs(child), "the end of the trainer's child", within_s=5)
    warnings = [event for event in open_run(run).events if event["kind"] == "warning"]
    assert "left 1 processes behind" in str(warnings[0]["message"])


def test_the_trainer_gets_the_planned_environment_and_nothing_to_read(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(
        kits.WRITER
        + "import json\n"
        + "group = {'group': os.getpgid(0), 'pid': os.getpid()}\n"
        + "seen = {**os.environ, **group, 'stdin': sys.stdin.read()}\n"
        + "(run / 'seen.json').write_text(json.dumps(seen))",
        environment=(Variable("JAX_PLATFORMS", "cpu", "planned"), Variable("LD_PRELOAD_X", None, "removed")),
    )
    kit.supervise(run, LD_PRELOAD_X="1", KEPT="2")
    wait_for(has_ended(kit, run), "the end")
    seen = json.loads((run / "seen.json").read_text())
    assert (seen["JAX_PLATFORMS"], seen["KEPT"], seen["NEEDLE_RUN"]) == ("cpu", "2", str(run))
    assert seen["NEEDLE_ATTEMPT"] == "1"
    assert "LD_PRELOAD_X" not in seen
    assert seen["stdin"] == ""
    assert seen["group"] == seen["pid"]


def test_a_second_attempt_goes_on_in_the_same_files(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(
        kits.WRITER
        + "print('attempt says', os.environ['NEEDLE_ATTEMPT'], flush=True)\n"
        + "first = 1 if writer.attempt == 1 else 3\n"
        + "for step in range(first, first + 4):\n    writer.report(step, loss=float(writer.attempt))\n"
        + "os.write(os.open(run / 'metrics.jsonl', os.O_WRONLY | os.O_APPEND), b'{\"step\": 9, \"lo')\n"
        + "os.kill(os.getpid(), 9)"
    )
    for attempt in (1, 2):
        kit.supervise(run).wait(20)
        assert (kit.state(run).attempt, kit.state(run).phase) == (attempt, "killed")
    log = RunFiles(run).log.read_text().splitlines()
    assert [line for line in log if not line.startswith("===")] == ["attempt says 1", "attempt says 2"]
    assert [line.startswith("=== needle: attempt 2") for line in log] == [False, True, False]
    loss = open_run(run).metrics.series("loss")
    assert loss.steps.tolist() == [1, 2, 3, 4, 5, 6]
    assert loss.values.tolist() == [1, 1, 2, 2, 2, 2]


def test_the_machine_is_sampled_while_the_trainer_runs(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.COOPERATES)
    kit.supervise(run)
    reader = RunReader(run)
    wait_for(lambda: reader.poll() and len(reader.system) >= 2, "two samples")
    sample = reader.system[-1]
    assert sample.process_bytes > 1 << 20
    assert sample.host_total_bytes > sample.host_used_bytes > 0
    (run / "go").touch()
    wait_for(has_ended(kit, run), "the end")


def test_a_run_has_one_supervisor_only(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.COOPERATES)
    kit.supervise(run)
    wait_for(lambda: kit.state(run).phase == "running", "running")
    assert kit.supervise(run).wait(10) == 2
    assert kit.state(run).attempt == 1
    assert "already" in (run / "supervisor.txt").read_text()
    (run / "go").touch()
    wait_for(has_ended(kit, run), "the end")
    assert observe_directory(run).phase == "finished"


def test_an_unreadable_state_does_not_make_attempts_begin_anew(kit: kits.Kit, wait_for: Wait) -> None:
    run = kit.make(kits.FINISHES)
    kit.supervise(run).wait(20)
    RunFiles(run).state.write_text("not json")
    kit.supervise(run).wait(20)
    state = read_state(run)
    assert state is not None
    assert (state.attempt, state.phase) == (2, "finished")


def _runs(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False
