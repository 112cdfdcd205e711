"""The backend that is planned, and the words it is planned with."""

import pytest

from needle.devices.inventory import Backend, Device, Host, Interpreter, Inventory
from needle.errors import InputError
from needle.launch.backend import choose_backend, first_device

CPU = Backend("cpu", "works", (Device("cpu:0", "cpu", "cpu", 0),), "an operation was right")
CUDA = Backend("cuda", "works", (Device("cuda:0", "cuda", "NVIDIA H200", 0, 150 * 2**30, 0, "9.0"),), "right")


def machine(*backends: Backend) -> Inventory:
    return Inventory(
        Host("box", 2, 2**34, 2**33), (Interpreter("python", ".venv", "3.11", {}),), backends, ()
    )


def test_auto_takes_the_accelerator_that_works():
    choice = choose_backend("auto", machine(CPU, CUDA))
    assert choice.choice == "cuda"
    assert "1 device" in choice.reason


def test_auto_falls_back_to_the_cpu_and_says_why_not_cuda():
    broken = Backend("cuda", "broken", (), "the driver is older than the wheel needs", "update the driver")
    choice = choose_backend("auto", machine(CPU, broken))
    assert choice.choice == "cpu"
    assert choice.rejected == {"cuda": "the driver is older than the wheel needs"}


def test_a_hinted_platform_is_planned_before_its_probe_has_ended():
    hinted = Backend("cuda", "untried", (), "an NVIDIA device node and the CUDA build are here")
    choice = choose_backend("auto", machine(CPU, hinted))
    assert choice.choice == "cuda"
    assert "checks it before training" in choice.reason


def test_asking_for_what_does_not_work_is_an_error_with_the_fix():
    absent = Backend("cuda", "absent", (), "no NVIDIA device node", "use cpu")
    with pytest.raises(InputError) as caught:
        choose_backend("cuda", machine(CPU, absent))
    assert caught.value.field == "backend"
    assert "no NVIDIA device node" in str(caught.value)
    assert "use cpu" in str(caught.value)


def test_gpu_is_translated_and_never_handed_to_jax():
    assert choose_backend("gpu", machine(CPU, CUDA)).choice == "cuda"
    with pytest.raises(InputError, match="cuda or rocm"):
        choose_backend("gpu", machine(CPU))


def test_metal_is_spelled_as_its_plugin_spells_it():
    metal = Backend("METAL", "works", (Device("METAL:0", "METAL", "Apple M4", 0),), "right")
    assert choose_backend("metal", machine(CPU, metal)).choice == "METAL"


def test_a_platform_this_program_does_not_know_is_left_to_the_run_to_check():
    assert choose_backend("oneapi", machine(CPU)).choice == "oneapi"


def test_who_asked_is_part_of_the_reason():
    assert "JAX_PLATFORMS" in choose_backend("cpu", machine(CPU), origin="JAX_PLATFORMS").reason


def test_the_first_device_of_a_platform():
    assert first_device(machine(CPU, CUDA), "cuda") == CUDA.devices[0]
    assert first_device(machine(CPU), "tpu") is None
