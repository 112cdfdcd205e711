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


def test_row_3_auto_falls_back_to_the_cpu_and_says_why_not_cuda():
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


def test_gpu_is_refused_with_the_reason_when_the_one_here_is_broken():
    broken = Backend("cuda", "broken", (), "the driver is too old", "update the driver")
    with pytest.raises(InputError) as caught:
        choose_backend("gpu", machine(CPU, broken))
    assert str(caught.value) == "cuda does not work here: the driver is too old\n  update the driver"


def test_when_nothing_works_the_start_is_refused_with_every_reason():
    broken = [Backend(name, "broken", (), f"{name} is ill", f"heal {name}") for name in ("cuda", "cpu")]
    with pytest.raises(InputError) as caught:
        choose_backend("auto", machine(*broken))
    assert caught.value.field == "backend"
    assert "cuda: cuda is ill; cpu: cpu is ill" in str(caught.value)
    assert caught.value.remedy == "heal cpu"


@pytest.mark.parametrize("name", ["my chip", "a=b", "", "-x", "--json"])
def test_what_cannot_be_the_name_of_a_platform_is_refused(name):
    with pytest.raises(InputError, match="not the name of one JAX platform"):
        choose_backend(name, machine(CPU))


def test_an_unknown_platform_that_was_probed_is_judged_by_its_probe():
    works = Backend("MyChip", "works", (Device("MyChip:0", "MyChip", "chip", 0),), "right")
    assert choose_backend("MyChip", machine(CPU, works)).choice == "MyChip"
    broken = Backend("MyChip", "broken", (), "this JAX has no build for MyChip")
    with pytest.raises(InputError, match="no build for MyChip"):
        choose_backend("MyChip", machine(CPU, broken))


def with_gpu_elsewhere(*backends: Backend) -> Inventory:
    gpu = Interpreter("/p/.venv-gpu/bin/python", ".venv-gpu", "3.12", {"jax": "0.10.2"})
    this = machine(*backends)
    return Inventory(this.host, (*this.interpreters, gpu), this.backends, elsewhere={gpu.path: (CUDA, CPU)})


def test_row_1_a_platform_of_another_interpreter_is_pointed_out():
    broken = Backend("cuda", "broken", (), "this JAX has no build for it", "pip install it")
    with pytest.raises(InputError) as caught:
        choose_backend("cuda", with_gpu_elsewhere(CPU, broken))
    assert caught.value.remedy == "it is in .venv-gpu: --python .venv-gpu"
    auto = choose_backend("auto", with_gpu_elsewhere(CPU, broken))
    assert auto.rejected["cuda"].endswith("; .venv-gpu has it: --python .venv-gpu")


def test_row_13_a_tpu_in_use_by_a_run_is_not_planned_for():
    tpu = Backend("tpu", "works", (Device("tpu:0", "tpu", "TPU v5e", 0),), "right", held_by="20261201-a")
    assert choose_backend("auto", machine(CPU, tpu)).choice == "cpu"
    assert choose_backend("auto", machine(CPU, tpu)).rejected == {"tpu": "in use by run 20261201-a"}
    with pytest.raises(InputError, match="serves one process") as caught:
        choose_backend("tpu", machine(CPU, tpu))
    assert caught.value.remedy.endswith("needle runs stop 20261201-a")


def test_a_gpu_in_use_by_a_run_is_shared_and_it_is_said():
    shared = Backend("cuda", "works", CUDA.devices, "right", held_by="20261201-a")
    assert "run 20261201-a computes on it now" in choose_backend("auto", machine(CPU, shared)).reason


def test_row_16_a_metal_that_fails_at_its_first_operation_leaves_the_cpu_with_the_reason():
    metal = Backend("METAL", "broken", (), "a float32 matrix product and its gradient failed")
    choice = choose_backend("auto", machine(metal, CPU))
    assert choice.choice == "cpu"
    assert choice.rejected == {"METAL": "a float32 matrix product and its gradient failed"}
