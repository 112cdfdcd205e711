"""Live runs and the platforms they hold: their own word is taken, and they are not probed."""

import os
from dataclasses import replace

import msgspec
import pytest

from needle.config import FinetuneSettings
from needle.devices.records import Backend, Device, Host, Interpreter, Inventory
from needle.launch.live import LiveUse, live_uses, with_live_uses
from needle.runs.index import create_run
from needle.runs.record import Decision, Plan, RunFiles, RunState, write_json
from needle.runs.state import boot_id, host_name, start_time
from needle.runs.writer import RunWriter

NOTHING = Decision("none", "a test")
HERE = Interpreter("/p/bin/python", ".venv", "3.11.7", {"jax": "0.10.2"})
THERE = Interpreter("/q/bin/python", ".venv-gpu", "3.12.4", {"jax": "0.10.2"})
UNTRIED = Backend("cuda", "untried", (), "NVIDIA H200; jax-cuda12-plugin 0.10.2")
USE = LiveUse("cuda", "20261201-a", HERE.path, 12, "NVIDIA H200", 2)


@pytest.fixture
def make_run(tmp_path):
    """A run whose trainer is this very process, with a state as its supervisor would keep it."""

    def make(platform="cuda", **state):
        plan = Plan(
            command=(HERE.path, "-m", "needle.train", "{run}"),
            command_line=(),
            interpreter=".venv",
            environment=(),
            backend=Decision(platform, "a test"),
            kernel=NOTHING,
            placement=NOTHING,
            precision=NOTHING,
            base=NOTHING,
        )
        directory = create_run("finetune", FinetuneSettings(), plan, tmp_path / "runs", f"on {platform}")
        pid, started = os.getpid(), start_time(os.getpid())
        living = RunState(
            phase="running",
            host=host_name(),
            boot_id=boot_id(),
            attempt=2,
            pid=pid,
            pid_started=started,
            supervisor_pid=pid,
            supervisor_started=started,
        )
        write_json(RunFiles(directory).state, msgspec.structs.replace(living, **state))
        return directory

    return make


def uses(tmp_path):
    return live_uses(tmp_path / "runs")


def test_a_living_run_holds_its_platform_with_what_it_reported(tmp_path, make_run):
    run = make_run()
    with RunWriterOf(run, attempt=1) as first:
        first.event("backend", platform="cuda", device="NVIDIA T4", devices=1)
    with RunWriterOf(run, attempt=2) as second:
        second.event("backend", platform="cuda", device="NVIDIA H200", devices=2)
    assert uses(tmp_path) == (replace(USE, run=run.name, pid=os.getpid()),)


def test_a_run_that_said_nothing_yet_holds_its_platform_all_the_same(tmp_path, make_run):
    run = make_run("rocm")
    assert uses(tmp_path) == (LiveUse("rocm", run.name, HERE.path, os.getpid()),)


@pytest.mark.parametrize(
    "state",
    [
        {"phase": "finished"},
        {"host": "another-host", "boot_id": "another-boot"},
        {"pid": 2**22 + 1, "supervisor_pid": 2**22 + 1},
    ],
    ids=["ended", "elsewhere", "dead"],
)
def test_a_run_that_is_over_or_elsewhere_holds_nothing_here(tmp_path, make_run, state):
    make_run(**state)
    assert uses(tmp_path) == ()


def test_a_spoiled_run_directory_does_not_hide_the_others(tmp_path, make_run):
    spoiled, run = make_run("tpu"), make_run()
    RunFiles(run).events.write_bytes(b'{"half": \xff\n[]\n')
    RunFiles(spoiled).request.write_bytes(b'{"id": "x", "created_at": 1}')
    assert [use.run for use in uses(tmp_path)] == [run.name]


def machine(*backends, elsewhere=(UNTRIED,)):
    return Inventory(Host("box", 8, 2, 1), (HERE, THERE), backends, elsewhere={THERE.path: elsewhere})


def test_what_a_run_reported_counts_as_tried_in_its_interpreter_only():
    seen = with_live_uses(machine(UNTRIED), [USE])
    (here,) = seen.backends
    assert (here.status, here.held_by) == ("works", "20261201-a")
    assert [(device.id, device.kind) for device in here.devices] == [
        ("cuda:0", "NVIDIA H200"),
        ("cuda:1", "NVIDIA H200"),
    ]
    (there,) = seen.elsewhere[THERE.path]
    assert (there.status, there.held_by) == ("untried", "20261201-a")


def test_a_run_that_said_nothing_yet_proves_nothing():
    (backend,) = with_live_uses(machine(UNTRIED), [replace(USE, device="")]).backends
    assert (backend.status, backend.held_by) == ("untried", "20261201-a")


def test_what_a_probe_found_is_kept_beside_the_run():
    probed = Backend(
        "cuda", "works", (Device("cuda:0", "cuda", "NVIDIA H200", 0, 100),), "right", bfloat16=True
    )
    assert with_live_uses(machine(probed), [USE]).backends == (replace(probed, held_by="20261201-a"),)


def test_of_two_runs_the_newest_is_named():
    older = replace(USE, run="20261130-b")
    assert with_live_uses(machine(UNTRIED), [USE, older]).backends[0].held_by == "20261201-a"


def test_a_run_that_ended_is_forgotten():
    held = with_live_uses(machine(UNTRIED), [USE])
    assert {backend.held_by for backend in with_live_uses(held, []).backends} == {""}


class RunWriterOf:
    """A writer as a context."""

    def __init__(self, directory, *, attempt):
        self.writer = RunWriter(directory, attempt)

    def __enter__(self):
        return self.writer

    def __exit__(self, *_):
        self.writer.close()
