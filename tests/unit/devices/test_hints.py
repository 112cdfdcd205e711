"""What static hints see of a machine that is only files."""

import pytest

from needle.devices.hints import read_hints


def look(machine, system="linux", architecture="x86_64"):
    return read_hints(machine.root, system, architecture)


def test_a_machine_without_accelerators_shows_only_its_cpu(machine):
    hints = look(machine)
    assert hints.hardware("cpu") == "Test CPU 3000"
    assert [hints.hardware(name) for name in ("cuda", "rocm", "tpu", "METAL")] == ["", "", "", ""]


@pytest.mark.parametrize("node", ["dev/nvidia0", "dev/nvidiactl", "dev/dxg"])
def test_each_node_that_jax_looks_for_is_a_hint_of_nvidia(machine, node):
    machine.write(node)
    assert node in look(machine).hardware("cuda")


def test_nvidia_cards_are_named_and_counted_in_bus_order(machine):
    machine.nvidia("NVIDIA H200", "NVIDIA H200", "NVIDIA T4")
    hints = look(machine)
    assert hints.nvidia_names == ("NVIDIA H200", "NVIDIA H200", "NVIDIA T4")
    assert hints.hardware("cuda") == "2 x NVIDIA H200, NVIDIA T4"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22", "550.54.14"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release", "580.65.06"),
        ("something else", ""),
    ],
)
def test_the_driver_version_is_read_from_both_kinds_of_module(machine, text, version):
    machine.write("proc/driver/nvidia/version", text)
    assert look(machine).nvidia_driver == version


def test_amd_counts_nodes_with_compute_units_only(machine):
    machine.write("dev/kfd")
    machine.write("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 16\nsimd_count 0\n")
    machine.write("sys/class/kfd/kfd/topology/nodes/1/properties", "cpu_cores_count 0\nsimd_count 304\n")
    assert look(machine).hardware("rocm") == "AMD GPU"


def test_amd_topology_without_its_device_node_is_no_gpu_for_this_process(machine):
    machine.write("sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 304\n")
    assert look(machine).hardware("rocm") == ""


def test_tpu_chips_are_recognised_by_google_ids_on_the_bus(machine):
    for slot, (vendor, device) in enumerate(
        [("0x1ae0", "0x0063"), ("0x1ae0", "0x0063"), ("0x1ae0", "0xffff")]
    ):
        machine.write(f"sys/bus/pci/devices/0000:00:0{slot}.0/vendor", vendor + "\n")
        machine.write(f"sys/bus/pci/devices/0000:00:0{slot}.0/device", device + "\n")
    assert look(machine).hardware("tpu") == "2 x TPU v5e"


def test_another_vendor_with_a_tpu_number_is_no_tpu(machine):
    machine.write("sys/bus/pci/devices/0000:00:01.0/vendor", "0x10de\n")
    machine.write("sys/bus/pci/devices/0000:00:01.0/device", "0x0063\n")
    assert look(machine).tpu_chips == 0


@pytest.mark.parametrize(("architecture", "seen"), [("arm64", "Apple GPU"), ("x86_64", "")])
def test_only_apple_silicon_has_metal(machine, architecture, seen):
    assert look(machine, "darwin", architecture).hardware("METAL") == seen
