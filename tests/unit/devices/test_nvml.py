"""NVIDIA devices through NVML: a fake of the driver's library, with the refusals real ones make."""

import os

import pytest

from needle.devices import nvml
from needle.devices.nvml import read_devices
from needle.devices.visible import jax_ids, whole_cards
from tests.unit.devices.fake_nvml import GIB, driver, sliced


def test_a_card_tells_memory_load_heat_power_and_its_users():
    first, second = read_devices(driver(), {})
    assert (first.id, first.name, first.used_bytes, first.total_bytes) == (
        "cuda:0",
        "NVIDIA H200",
        GIB,
        139 * GIB,
    )
    assert (first.utilisation_percent, first.temperature_c, first.power_w) == (87.0, 61.0, 421.5)
    assert second.id == "cuda:1"
    ours, outside = first.processes
    assert (ours.pid, ours.name, ours.used_bytes) == (os.getpid(), "python3", GIB)
    assert (outside.name, outside.used_bytes) == ("", None)


@pytest.mark.parametrize(
    "refused",
    [
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetName",
    ],
)
@pytest.mark.parametrize("how", ["refuses", "lacks"])
def test_a_question_the_driver_refuses_or_does_not_know_leaves_the_rest(refused, how):
    devices = read_devices(driver(**{how: (refused,)}), {})
    assert [device.id for device in devices] == ["cuda:0", "cuda:1"]
    assert all(device.total_bytes or device.power_w for device in devices)


def test_a_lost_card_leaves_the_others_with_their_numbers():
    (left,) = read_devices(driver(lost=(0,)), {})
    assert (left.id, left.used_bytes) == ("cuda:1", 2 * GIB)


def test_a_card_in_mig_mode_is_listed_by_its_slices_and_jax_sees_one():
    devices = read_devices(sliced(driver()), {})
    assert [(device.id, device.name, device.uuid) for device in devices] == [
        ("GPU 0", "NVIDIA H200", "GPU-0aaa"),
        ("cuda:0", "NVIDIA H200 MIG 1g.18gb", "MIG-10"),
        ("MIG 1:1", "NVIDIA H200 MIG 1g.18gb", "MIG-13"),
    ]


def test_mig_mode_without_slices_leaves_the_card():
    library = sliced(driver())
    library.nvmlDeviceGetMaxMigDeviceCount = lambda card: 0
    assert [device.id for device in read_devices(library, {})] == ["cuda:0", "cuda:1"]


@pytest.mark.parametrize(
    ("visible", "ids"),
    [
        (None, ["cuda:0", "cuda:1", "cuda:2"]),
        ("2,0", ["cuda:1", "GPU 1", "cuda:0"]),
        ("", ["GPU 0", "GPU 1", "GPU 2"]),
        ("-1", ["GPU 0", "GPU 1", "GPU 2"]),
        ("1,7,0", ["GPU 0", "cuda:0", "GPU 2"]),
        ("GPU-2aaa", ["GPU 0", "GPU 1", "cuda:0"]),
        ("MIG-123", ["GPU 0", "GPU 1", "GPU 2"]),
    ],
)
def test_ids_follow_jax_under_visible_devices_and_nvidia_smi_for_hidden_ones(visible, ids):
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    cards = whole_cards(["GPU-0aaa-b", "GPU-1aaa-b", "GPU-2aaa-b"])
    assert list(jax_ids(cards, environment)) == ids


def test_without_a_driver_there_are_no_devices_and_no_error(monkeypatch):
    monkeypatch.setattr(nvml, "NVIDIA_NODES", ("/nowhere/nvidia0",))
    monkeypatch.setattr(nvml, "_loaded", [])
    assert nvml.device_samples() == []
    assert nvml.driver_version() == ""


def test_a_driver_library_that_does_not_load_is_no_error(monkeypatch, tmp_path):
    node = tmp_path / "nvidia0"
    node.touch()
    monkeypatch.setattr(nvml, "NVIDIA_NODES", (str(node),))
    monkeypatch.setattr(nvml, "_loaded", [])
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    import pynvml

    monkeypatch.setattr(pynvml, "nvmlInit", lambda: (_ for _ in ()).throw(pynvml.NVMLError(9)))
    assert nvml.device_samples() == []
