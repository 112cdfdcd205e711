"""The static and the cached inventory, on machines made of files and on this one."""

import json
import subprocess
import sys
from dataclasses import replace

import msgspec
import pytest

from needle.devices import cache
from needle.devices.inventory import _remember, cached_inventory, static_inventory
from needle.devices.probing import Outcome
from needle.devices.records import Backend, Device, Inventory
from needle.devices.sight import look

H200 = "NVIDIA H200"


def backend(inventory, platform):
    (found,) = [one for one in inventory.backends if one.platform == platform]
    return found


def test_row_10_every_platform_is_listed_whatever_the_default_is(machine):
    machine.install(jax="0.10.2")
    inventory = static_inventory(machine.surroundings())
    assert [one.platform for one in inventory.backends] == ["cuda", "rocm", "tpu", "METAL", "cpu"]
    assert [one.status for one in inventory.backends] == ["absent", "absent", "absent", "absent", "untried"]
    assert all(one.reason for one in inventory.backends)


def test_hardware_with_its_build_is_untried_and_its_devices_are_named(machine):
    machine.nvidia(H200, H200).install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    cuda = backend(static_inventory(machine.surroundings()), "cuda")
    assert (cuda.status, cuda.reason) == ("untried", "2 x NVIDIA H200; jax-cuda12-plugin 0.10.2")
    assert [(device.id, device.kind) for device in cuda.devices] == [("cuda:0", H200), ("cuda:1", H200)]


def test_devices_are_numbered_as_jax_will_number_the_visible_ones(machine):
    machine.nvidia(H200, "NVIDIA T4").install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    around = machine.surroundings(environment={"CUDA_VISIBLE_DEVICES": "1"})
    assert [(one.id, one.kind) for one in backend(static_inventory(around), "cuda").devices] == [
        ("cuda:0", "NVIDIA T4")
    ]


@pytest.mark.parametrize(
    ("visible", "shown", "hidden"),
    [
        ("1", ["cuda:0 NVIDIA T4"], ["GPU 0 NVIDIA H200"]),
        ("GPU-1aaa", ["cuda:0 NVIDIA T4"], ["GPU 0 NVIDIA H200"]),
        ("1,0", ["cuda:0 NVIDIA T4", "cuda:1 NVIDIA H200"], []),
        ("-1", [], ["GPU 0 NVIDIA H200", "GPU 1 NVIDIA T4"]),
        ("MIG-5f2e", [], []),
    ],
)
def test_hidden_devices_are_named_as_nvidia_smi_names_them(machine, visible, shown, hidden):
    machine.nvidia(H200, "NVIDIA T4").install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    around = machine.surroundings(environment={"CUDA_VISIBLE_DEVICES": visible})
    cuda = backend(static_inventory(around), "cuda")
    assert [f"{one.id} {one.kind}" for one in cuda.devices] == shown
    assert [f"{one.id} {one.kind}" for one in cuda.hidden] == hidden


@pytest.mark.parametrize("name", ["JAX_PLATFORMS", "JAX_PLATFORM_NAME"])
def test_a_platform_that_the_environment_forces_is_listed_to_be_tried(machine, name):
    machine.install(jax="0.10.2")
    forced = static_inventory(machine.surroundings(environment={name: "MyChip,cpu"})).backends
    assert [(one.platform, one.status) for one in forced][-1] == ("MyChip", "untried")
    assert [one.platform for one in forced].count("cpu") == 1


def test_row_4_gpu_in_the_environment_is_no_platform_of_its_own(machine):
    machine.install(jax="0.10.2")
    around = machine.surroundings(environment={"JAX_PLATFORMS": "gpu"})
    assert [one.platform for one in static_inventory(around).backends] == [
        "cuda",
        "rocm",
        "tpu",
        "METAL",
        "cpu",
    ]


def test_hidden_gpus_are_absent_so_that_auto_takes_the_cpu(machine):
    machine.nvidia(H200).install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    cuda = backend(static_inventory(machine.surroundings(environment={"CUDA_VISIBLE_DEVICES": ""})), "cuda")
    assert (cuda.status, cuda.fix) == ("absent", "unset CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    ("installed", "status", "reason"),
    [
        ({}, "broken", "NVIDIA H200 is here; JAX is not installed here"),
        ({"jax": "0.10.2"}, "broken", "NVIDIA H200 is here, but this JAX has no build for it"),
        (
            {"jax": "0.10.2", "jax_rocm7_plugin": "1"},
            "broken",
            "NVIDIA H200 is here, but this JAX has no build",
        ),
    ],
)
def test_row_1_hardware_without_its_build_is_broken_with_a_fix(machine, installed, status, reason):
    machine.nvidia(H200).install(**installed)
    cuda = backend(static_inventory(machine.surroundings()), "cuda")
    assert cuda.status == status
    assert cuda.reason.startswith(reason)
    assert "pip install" in cuda.fix


def test_row_6_a_build_without_hardware_is_absent_and_says_so(machine):
    machine.install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    cuda = backend(static_inventory(machine.surroundings()), "cuda")
    assert (cuda.status, cuda.reason) == (
        "absent",
        "jax-cuda12-plugin 0.10.2 is installed, but no NVIDIA GPU is seen",
    )


def test_apple_silicon_with_jax_metal_shares_the_hosts_memory(machine):
    machine.install(jax="0.4.38", jax_metal="0.1.1")
    metal = backend(static_inventory(machine.surroundings(system="darwin")), "METAL")
    assert metal.status == "untried"
    assert metal.devices[0].total_bytes == 64 << 30


def test_the_cpu_tells_model_and_memory(machine):
    machine.install(jax="0.10.2")
    (device,) = backend(static_inventory(machine.surroundings()), "cpu").devices
    assert (device.kind, device.total_bytes, device.used_bytes) == ("Test CPU 3000", 64 << 30, 16 << 30)


def test_an_inventory_survives_json():
    inventory = static_inventory()
    assert msgspec.json.decode(msgspec.json.encode(inventory), type=Inventory) == inventory


CHILD = """
import sys, time, json
events = []
watched = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system")
def hook(name, arguments):
    if name in watched or (name == "open" and str(arguments[0]).startswith("/dev/")):
        events.append([name, str(arguments[0])])
from needle.devices.inventory import cached_inventory, static_inventory
sys.addaudithook(hook)
started = time.perf_counter()
static_inventory()
elapsed_ms = (time.perf_counter() - started) * 1e3
cached_inventory()
heavy = [name for name in ("jax", "jaxlib", "numpy", "flax", "pynvml") if name in sys.modules]
print(json.dumps({"events": events, "heavy": heavy, "elapsed_ms": elapsed_ms}))
"""


def test_looking_starts_no_process_opens_no_device_loads_no_jax_and_takes_under_50_ms():
    runs = [
        json.loads(
            subprocess.run([sys.executable, "-c", CHILD], capture_output=True, check=True, text=True).stdout
        )
        for _ in range(3)
    ]
    assert all(run["events"] == [] for run in runs)
    assert all(run["heavy"] == [] for run in runs)
    # The best of three: other work on this machine only ever adds.
    assert min(run["elapsed_ms"] for run in runs) < 50


WORKS = Backend("cpu", "works", (Device("cpu:0", "cpu", "cpu", 0),), "right", bfloat16=True)
GPU = Backend("cuda", "works", (Device("cuda:0", "cuda", H200, 0, 100, 50, "9.0"),), "right")


def remember(around, *outcomes, at=1000.0):
    _remember({one.backend.platform: one for one in outcomes}, look(around), at)


def test_what_was_probed_is_known_next_time(machine):
    machine.install(jax="0.10.2")
    around = machine.surroundings()
    assert cached_inventory(around) is None
    remember(around, Outcome(WORKS))
    known = cached_inventory(around)
    assert known.probed_at == 1000.0
    assert backend(known, "cpu").status == "works"
    assert backend(known, "cpu").bfloat16
    assert backend(known, "cuda").status == "absent"


def test_host_memory_of_a_cached_answer_is_of_now_and_device_use_is_left_open(machine):
    machine.nvidia(H200).install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    around = machine.surroundings()
    remember(around, Outcome(WORKS), Outcome(GPU))
    machine.write("proc/meminfo", f"MemTotal: {64 << 20} kB\nMemAvailable: {8 << 20} kB\n")
    known = cached_inventory(around)
    assert backend(known, "cpu").devices[0].used_bytes == 56 << 30
    (device,) = backend(known, "cuda").devices
    assert (device.total_bytes, device.used_bytes, device.capability) == (100, None, "9.0")


CHANGES = {
    "another jax": lambda machine, around: machine.install(jax_cuda12_plugin="0.10.3") and around,
    "another driver": lambda machine, around: machine.nvidia(H200, driver="600.1") and around,
    "a reboot": lambda machine, around: (
        machine.write("proc/sys/kernel/random/boot_id", "boot-two") and around
    ),
    "visible devices": lambda machine, around: replace(around, environment={"CUDA_VISIBLE_DEVICES": "0"}),
    "XLA flags": lambda machine, around: replace(around, environment={"XLA_FLAGS": "--xla_x"}),
    "another interpreter": lambda machine, around: replace(around, python="/elsewhere/python"),
    "a package unknown to us": lambda machine, around: machine.install(brand_new="1") and around,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_the_answer_ends_the_cache(machine, change):
    machine.install(jax="0.10.2")
    around = machine.surroundings()
    remember(around, Outcome(WORKS))
    assert cached_inventory(CHANGES[change](machine, around)) is None


def test_what_does_not_change_the_answer_keeps_the_cache(machine):
    machine.install(jax="0.10.2")
    around = machine.surroundings()
    remember(around, Outcome(WORKS))
    machine.write("proc/meminfo", f"MemTotal: {64 << 20} kB\nMemAvailable: {1 << 20} kB\n")
    assert cached_inventory(replace(around, environment={"EDITOR": "vi"})) is not None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"key": 1}', b"\xff\xfe", b"null"])
def test_a_corrupt_cache_is_no_cache(machine, content):
    machine.install(jax="0.10.2")
    around = machine.surroundings()
    remember(around, Outcome(WORKS))
    look(around).cache_file().write_bytes(content)
    assert cached_inventory(around) is None


def test_a_cache_that_cannot_be_written_is_no_failure(machine):
    machine.install(jax="0.10.2")
    around = machine.surroundings()
    (machine.directory / "cache").write_text("a file where the directory should be")
    remember(around, Outcome(WORKS))
    assert cached_inventory(around) is None


def test_a_hang_is_believed_for_a_while_only(machine, monkeypatch):
    machine.nvidia(H200).install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    around = machine.surroundings()
    remember(around, Outcome(WORKS), Outcome(Backend("cuda", "broken", reason="no answer"), settled=False))
    monkeypatch.setattr("time.time", lambda: 1599.0)
    assert backend(cached_inventory(around), "cuda").status == "broken"
    monkeypatch.setattr("time.time", lambda: 1601.0)
    assert cached_inventory(around) is None


def test_a_probe_that_was_stopped_is_not_remembered(machine):
    machine.install(jax="0.10.2")
    around = machine.surroundings()
    remember(around, Outcome(Backend("cpu", "untried"), settled=False))
    assert cached_inventory(around) is None


def test_asking_one_platform_again_keeps_what_is_known_of_the_others(machine):
    machine.nvidia(H200).install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    around = machine.surroundings()
    remember(around, Outcome(WORKS), Outcome(GPU))
    remember(around, Outcome(WORKS), at=2000.0)
    known = cached_inventory(around)
    assert (backend(known, "cuda").status, known.probed_at) == ("works", 2000.0)


def test_each_interpreter_has_its_own_cache_file(tmp_path):
    assert cache.cache_file(tmp_path, "/a/python") != cache.cache_file(tmp_path, "/b/python")
