"""The machine as a start needs it: what is remembered, else probed; broken interpreters passed over."""

from dataclasses import replace

import pytest

from needle.devices import nvml
from needle.devices.inventory import with_device_use
from needle.devices.records import Backend, Device, Host, Interpreter, Inventory
from needle.launch import inventory as room
from needle.launch.inventory import inventory_for_start, probed_everywhere
from needle.launch.live import LiveUse
from tests.unit.devices.fake_nvml import GIB, driver

JAX = {"jax": "0.10.2"}
A = Interpreter("/a/bin/python", "a", "3.12", JAX)
B = Interpreter("/b/bin/python", "b", "3.12", JAX)
BARE = Interpreter("/c/bin/python", "c", "3.12", {}, "JAX is not installed here")
UNTRIED = Backend("cpu", "untried", reason="jax 0.10.2")
WORKS = Backend("cpu", "works", reason="right")
BROKEN = Backend("cpu", "broken", reason="it crashes")


class Machine:
    """Interpreters with the answers that their probes would give; remembers what was probed."""

    def __init__(self, monkeypatch, *interpreters, answers, uses=()):
        self.interpreters, self.answers, self.probed, self.platforms = interpreters, answers, [], []
        self.known = {one.path: UNTRIED for one in interpreters}
        monkeypatch.setattr(room, "inventory_from", self.seen)
        monkeypatch.setattr(room, "probed_inventory", self.probe)
        monkeypatch.setattr(room, "live_uses", lambda directory: uses)
        monkeypatch.setattr(room, "with_device_use", lambda machine, environment: machine)

    def seen(self, python):
        chosen = [one for one in self.interpreters if python in ("", one.label)]
        able = sorted(chosen, key=lambda one: self.known[one.path].status == "broken")
        others = [one for one in self.interpreters if one != able[0]]
        backends = {one.path: (self.known[one.path],) for one in others}
        return Inventory(
            Host("box", 2, 2, 1), (able[0], *others), (self.known[able[0].path],), elsewhere=backends
        )

    def probe(self, machine, *, python, platforms, in_use, **_):
        self.probed.append(python)
        self.platforms.append(tuple(platforms))
        self.known[python] = self.answers.get(python, self.known[python])
        interpreter = next(one for one in machine.interpreters if one.path == python)
        added = tuple(Backend(name, "works", reason="right") for name in platforms)
        return machine.with_backends(interpreter, (self.known[python], *added))


def quiet(text):
    """Says nothing."""


def test_what_is_remembered_is_not_asked_again(monkeypatch):
    machine = Machine(monkeypatch, A, answers={})
    machine.known[A.path] = WORKS
    assert inventory_for_start(quiet, environment={}).backends == (WORKS,)
    assert machine.probed == []


def test_an_interpreter_that_turns_out_broken_leads_to_the_next_that_can_train(monkeypatch):
    machine = Machine(monkeypatch, A, B, answers={A.path: BROKEN, B.path: WORKS})
    said = []
    found = inventory_for_start(said.append, environment={})
    assert (found.interpreters[0], found.backends) == (B, (WORKS,))
    assert machine.probed == [A.path, B.path]
    assert ["backends of a" in said[0], "backends of b" in said[1]] == [True, True]


def test_when_none_works_the_search_ends(monkeypatch):
    machine = Machine(monkeypatch, A, B, answers={A.path: BROKEN, B.path: BROKEN})
    assert inventory_for_start(quiet, environment={}).backends == (BROKEN,)
    assert machine.probed == [A.path, B.path]


def test_an_answer_that_cannot_be_remembered_serves_this_start_all_the_same(monkeypatch):
    machine = Machine(monkeypatch, A, answers={A.path: WORKS})
    monkeypatch.setattr(machine, "known", {A.path: UNTRIED})
    original = machine.probe

    def forgetful(*arguments, **more):
        found = original(*arguments, **more)
        machine.known[A.path] = UNTRIED
        return found

    monkeypatch.setattr(room, "probed_inventory", forgetful)
    assert inventory_for_start(quiet, environment={}).backends == (WORKS,)
    assert machine.probed == [A.path]


def test_the_interpreter_asked_for_is_probed_and_no_other_taken_in_its_place(monkeypatch):
    machine = Machine(monkeypatch, A, B, answers={B.path: BROKEN})
    assert inventory_for_start(quiet, python="b", environment={}).interpreters[0] == B
    assert machine.probed == [B.path]


def test_one_that_cannot_train_is_not_started_at_all(monkeypatch):
    machine = Machine(monkeypatch, BARE, answers={})
    assert inventory_for_start(quiet, environment={}).interpreters[0].problem
    assert machine.probed == []


@pytest.mark.parametrize(
    ("backend", "environment"),
    [("MyChip", {}), ("auto", {"JAX_PLATFORMS": "MyChip"})],
    ids=["asked", "forced"],
)
def test_a_platform_that_nobody_knows_is_probed_before_a_run_is_planned_for_it(
    monkeypatch, backend, environment
):
    machine = Machine(monkeypatch, A, answers={})
    machine.known[A.path] = WORKS
    found = inventory_for_start(quiet, backend, environment=environment)
    assert machine.platforms == [("MyChip",)]
    assert [one.platform for one in found.backends] == ["cpu", "MyChip"]


def test_a_platform_that_a_live_run_holds_is_not_probed(monkeypatch):
    machine = Machine(monkeypatch, A, answers={}, uses=(LiveUse("cpu", "20261201-a", A.path),))
    (cpu,) = inventory_for_start(quiet, environment={}).backends
    assert (machine.probed, cpu.held_by) == ([], "20261201-a")


def test_every_interpreter_that_has_jax_is_probed_when_all_are_asked_for(monkeypatch):
    machine = Machine(monkeypatch, A, BARE, B, answers={A.path: WORKS, B.path: WORKS})
    found = probed_everywhere(machine.seen(""))
    assert machine.probed == [A.path, B.path]
    assert (found.backends, found.elsewhere[B.path]) == ((WORKS,), (WORKS,))


def test_who_uses_an_nvidia_device_is_told_without_jax(monkeypatch):
    broken = Backend(
        "cuda", "broken", (Device("cuda:0", "cuda", "NVIDIA H200", 0),), "JAX is not installed here"
    )
    monkeypatch.setattr(nvml, "_loaded", [driver()])
    machine = Inventory(Host("box", 2, 2, 1), (BARE, A), (broken,), elsewhere={A.path: (broken, WORKS)})
    seen = with_device_use(machine, {})
    for cuda, *_ in (seen.backends, seen.elsewhere[A.path]):
        assert cuda.devices[0].used_bytes == GIB
        assert cuda.devices[0].processes[0].name == "python3"
    assert with_device_use(machine, {"CUDA_VISIBLE_DEVICES": "1"}).backends[0].hidden[0].id == "GPU 0"


def test_an_inventory_from_before_is_left_as_it_was():
    machine = Inventory(Host("box", 2, 2, 1), (A, B), (WORKS,), elsewhere={B.path: (UNTRIED,)})
    changed = machine.with_backends(B, (WORKS,))
    assert machine.elsewhere == {B.path: (UNTRIED,)}
    assert changed == replace(machine, elsewhere={B.path: (WORKS,)})
