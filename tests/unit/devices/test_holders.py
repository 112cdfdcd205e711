"""Who holds a TPU, by files under /proc, and locks that outlived their process."""

import os
from dataclasses import replace

import pytest

from needle.devices.doctor import findings
from needle.devices.holders import tpu_holders
from needle.devices.inventory import static_inventory


@pytest.fixture
def tpu_machine(machine):
    """A machine with four TPU chips."""
    for chip in range(4):
        machine.write(f"sys/bus/pci/devices/0000:0{chip}:00.0/vendor", "0x1ae0\n")
        machine.write(f"sys/bus/pci/devices/0000:0{chip}:00.0/device", "0x0063\n")
    machine.install(jax="0.10.2", libtpu="0.0.20")
    return machine


def hold(machine, pid, target, name="python3"):
    machine.write(f"proc/{pid}/comm", f"{name}\n")
    descriptors = machine.root / f"proc/{pid}/fd"
    descriptors.mkdir(parents=True, exist_ok=True)
    os.symlink(target, descriptors / str(len(list(descriptors.iterdir()))))


def found(machine, **more):
    return {one.title: one for one in findings(static_inventory(machine.surroundings(**more)))}


@pytest.mark.parametrize("node", ["/dev/accel0", "/dev/vfio/1"])
def test_row_13_the_process_that_holds_the_tpu_is_named(tpu_machine, node):
    hold(tpu_machine, 4242, "/dev/null")
    hold(tpu_machine, 4242, node)
    hold(tpu_machine, 17, "/home/ada/accel.txt")
    problem = found(tpu_machine)["The TPU is held by another process"]
    assert "python3 (pid 4242)" in problem.detail
    assert "17" not in problem.detail
    assert problem.fix.endswith("ps -fp 4242")


def test_row_11_a_lock_of_another_user_is_shown_with_its_owner_and_never_removed(tpu_machine):
    lock = tpu_machine.write("tmp/libtpu_lockfile")
    around = replace(tpu_machine.surroundings(), user=lock.stat().st_uid + 1)
    (problem,) = findings(static_inventory(around))
    assert problem.title == "Another user's lock of the TPU is left"
    assert "/tmp/libtpu_lockfile belongs to" in problem.detail
    assert "sudo rm /tmp/libtpu_lockfile" in problem.fix
    assert lock.exists()


def test_row_11_ones_own_lock_stops_nobody(tpu_machine):
    lock = tpu_machine.write("tmp/libtpu_lockfile")
    around = replace(tpu_machine.surroundings(), user=lock.stat().st_uid)
    assert findings(static_inventory(around)) == ()


def test_a_tpu_that_nobody_holds_is_no_finding(tpu_machine):
    assert found(tpu_machine) == {}


def test_without_a_tpu_nobody_is_looked_for(machine):
    machine.install(jax="0.10.2")
    hold(machine, 4242, "/dev/vfio/1")
    assert found(machine) == {}


def test_processes_that_may_not_be_looked_at_are_passed_over(machine):
    machine.write("proc/7/comm", "secret")
    machine.write("proc/8/fd", "not a directory")
    assert tpu_holders(machine.root).processes == ()
