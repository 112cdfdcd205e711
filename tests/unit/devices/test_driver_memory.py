"""What the NVIDIA driver adds to the backends, with and without JAX."""

from needle.devices.doctor import findings, users_text
from needle.devices.driver_memory import with_driver_memory
from needle.devices.nvml import DeviceUse
from needle.devices.records import Backend, Device, DeviceProcess, Host, Interpreter, Inventory

GIB = 1 << 30
H200 = "NVIDIA H200"
BUSY = DeviceUse(
    "cuda:0",
    H200,
    60 * GIB,
    139 * GIB,
    90.0,
    60.0,
    400.0,
    (DeviceProcess(12, "python3", 59 * GIB),),
    "GPU-0a",
)
FREE = DeviceUse("cuda:1", H200, GIB, 139 * GIB, 0.0, 40.0, 80.0, (), "GPU-1a")
HIDDEN = DeviceUse("GPU 2", H200, 2 * GIB, 139 * GIB, 0.0, 40.0, 80.0, (), "GPU-2a")
PROBED = Backend(
    "cuda",
    "works",
    (Device("cuda:0", "cuda", H200, 0, 104 * GIB, GIB, "9.0"), Device("cuda:1", "cuda", H200, 1)),
)


def machine(*backends):
    host = Host("box", 8, 64 * GIB, 32 * GIB)
    return Inventory(host, (Interpreter("/bin/python", "env", "3.12", {"jax": "0.10.2"}),), backends)


def test_the_whole_devices_memory_and_its_users_are_told_beside_what_jax_knows():
    first, second = with_driver_memory(PROBED, [BUSY, FREE]).devices
    assert (first.total_bytes, first.used_bytes, first.capability) == (139 * GIB, 60 * GIB, "9.0")
    assert first.uuid == "GPU-0a"
    assert users_text(first) == "python3 (pid 12) 59.0 GiB"
    assert second.used_bytes == GIB


def test_without_jax_the_drivers_devices_are_listed_all_the_same():
    broken = Backend("cuda", "broken", (), "JAX is not installed here")
    devices = with_driver_memory(broken, [FREE, BUSY]).devices
    assert [(device.id, device.kind, device.used_bytes) for device in devices] == [
        ("cuda:0", H200, 60 * GIB),
        ("cuda:1", H200, GIB),
    ]


def test_hidden_devices_keep_the_name_that_nvidia_smi_gives_them():
    (hidden,) = with_driver_memory(PROBED, [BUSY, FREE, HIDDEN]).hidden
    assert (hidden.id, hidden.index, hidden.uuid, hidden.used_bytes) == ("GPU 2", 2, "GPU-2a", 2 * GIB)


def test_other_platforms_and_machines_without_a_driver_are_left_alone():
    cpu = Backend("cpu", "works", (Device("cpu:0", "cpu", "cpu", 0, GIB, 0),))
    assert with_driver_memory(cpu, [BUSY]) is cpu
    assert with_driver_memory(PROBED, []) is PROBED


def test_rows_35_and_37_memory_that_others_hold_is_told_with_who_and_that_it_may_be_only_reserved():
    (problem,) = findings(machine(with_driver_memory(PROBED, [BUSY, FREE])))
    assert problem.title == "cuda:0 is in use by other programs"
    assert "60.0 GiB of 139 GiB are taken by python3 (pid 12) 59.0 GiB" in problem.detail
    assert "reserves three quarters at its start, used or not" in problem.detail
    assert "--devices" in problem.fix


def test_memory_of_a_run_of_ours_is_no_finding():
    held = with_driver_memory(PROBED, [BUSY, FREE])
    assert findings(machine(Backend("cuda", "works", held.devices, held_by="20261201-a"))) == ()


def test_memory_shared_with_the_host_is_no_finding():
    apple = Device("METAL:0", "METAL", "Apple M4", 0, 64 * GIB, 32 * GIB, unified=True)
    assert findings(machine(Backend("METAL", "works", (apple,)))) == ()


def test_what_cannot_run_is_told_before_what_is_crowded():
    crowded = with_driver_memory(PROBED, [BUSY, FREE])
    told = findings(machine(crowded, Backend("tpu", "broken", reason="x")))
    assert [problem.title for problem in told] == [
        "Google TPU cannot be used",
        "cuda:0 is in use by other programs",
    ]
