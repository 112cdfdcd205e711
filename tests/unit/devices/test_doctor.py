"""Findings of the doctor on machines made of files. Ids are rows of the field notes."""

import pytest

from needle.devices.doctor import can_train, findings
from needle.devices.inventory import static_inventory
from needle.devices.records import Backend, Host, Interpreter, Inventory, Problem

GIB = 1 << 30
H200 = "NVIDIA H200"


def found(machine, **surroundings):
    return {
        problem.title: problem for problem in findings(static_inventory(machine.surroundings(**surroundings)))
    }


def test_a_healthy_machine_has_no_findings(machine):
    machine.install(jax="0.10.2", jaxlib="0.10.2")
    assert found(machine) == {}


@pytest.mark.parametrize(("driver", "extra"), [("550.54.14", "gpu"), ("580.65.06", "gpu13")])
def test_row_1_an_nvidia_gpu_without_a_cuda_build_has_the_exact_line_that_installs_it(machine, driver, extra):
    machine.nvidia(H200, driver=driver).install(jax="0.10.2", jaxlib="0.10.2")
    problem = found(machine)["NVIDIA GPU (CUDA) cannot be used"]
    assert problem.detail == "NVIDIA H200 is here, but this JAX has no build for it"
    assert problem.fix.endswith(f"-m pip install 'needle-tui[{extra}]'")


@pytest.mark.parametrize(
    ("driver", "plugin", "needs"),
    [("515.43", "jax_cuda12_plugin", "525"), ("570.1", "jax_cuda13_plugin", "580"), ("470.1", None, "525")],
)
def test_row_24_a_driver_older_than_the_wheel_needs_is_named(machine, driver, plugin, needs):
    machine.nvidia(H200, driver=driver).install(jax="0.10.2")
    if plugin:
        machine.install(**{plugin: "0.10.2"})
    problem = found(machine)["The NVIDIA driver is too old"]
    assert driver in problem.detail
    assert f"update the driver to {needs}" in problem.fix


def test_row_24_a_driver_too_old_for_cuda_13_may_still_serve_cuda_12(machine):
    machine.nvidia(H200, driver="570.1").install(jax="0.10.2", jax_cuda13_plugin="0.10.2")
    assert "needle-tui[gpu]" in found(machine)["The NVIDIA driver is too old"].fix


@pytest.mark.parametrize(
    ("driver", "plugin"), [("525.60.13", "jax_cuda12_plugin"), ("580.65", "jax_cuda13_plugin")]
)
def test_row_24_a_driver_that_is_new_enough_is_no_finding(machine, driver, plugin):
    machine.nvidia(H200, driver=driver).install(jax="0.10.2", **{plugin: "0.10.2"})
    assert found(machine) == {}


def test_row_21_both_gpu_builds_in_one_environment(machine):
    machine.install(jax="0.10.2", jax_cuda12_plugin="0.10.2", jax_rocm7_plugin="0.10.2")
    problem = found(machine)["CUDA and ROCm builds of JAX share one environment"]
    assert "jax-cuda12-plugin, jax-rocm7-plugin" in problem.detail
    assert "uninstall one" in problem.fix


@pytest.mark.parametrize(
    ("jax", "wrong"), [("0.4.38", False), ("0.5.0", False), ("0.5.1", True), ("0.10.2", True)]
)
def test_rows_14_and_15_jax_metal_with_a_jax_it_does_not_belong_to(machine, jax, wrong):
    machine.install(jax=jax, jax_metal="0.1.1")
    assert ("jax-metal and jax do not belong together" in found(machine, system="darwin")) is wrong


def test_row_22_a_toolkit_in_the_library_path_is_named_with_what_is_done(machine):
    machine.nvidia(H200).install(jax="0.10.2", jax_cuda12_plugin="0.10.2", nvidia_cudnn_cu12="9.13")
    problem = found(machine, environment={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"})[
        "LD_LIBRARY_PATH is set"
    ]
    assert "runs and probes go without /usr/local/cuda/lib64" in problem.detail


def test_row_22_without_an_nvidia_gpu_the_library_path_is_nobodys_business(machine):
    machine.install(jax="0.10.2")
    assert found(machine, environment={"LD_LIBRARY_PATH": "/opt/gcc/lib64"}) == {}


def test_row_9_the_old_platform_variable_is_translated(machine):
    machine.install(jax="0.10.2")
    problem = found(machine, environment={"JAX_PLATFORM_NAME": "cpu"})["JAX_PLATFORM_NAME is set"]
    assert "every backend still starts" in problem.detail
    assert "JAX_PLATFORMS=cpu" in problem.fix


def test_both_memory_fractions_are_a_finding(machine):
    machine.install(jax="0.10.2")
    both = {"XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}
    (problem,) = found(machine, environment=both).values()
    assert problem.fix == "unset XLA_PYTHON_CLIENT_MEM_FRACTION"


def test_a_memory_limit_below_the_machines_is_told(machine):
    machine.install(jax="0.10.2")
    machine.write("proc/self/cgroup", "0::/job\n")
    machine.write("sys/fs/cgroup/job/memory.max", str(8 * GIB))
    problem = found(machine)["Memory is limited below the machine's"]
    assert "8.0 GiB of 64.0 GiB may be used" in problem.detail


@pytest.mark.parametrize("value", ["", "-1"])
def test_row_6_hidden_gpus_are_told(machine, value):
    machine.nvidia(H200).install(jax="0.10.2", jax_cuda12_plugin="0.10.2")
    assert "Every NVIDIA GPU is hidden" in found(machine, environment={"CUDA_VISIBLE_DEVICES": value})


def test_an_interpreter_without_jax_is_told_the_extra(machine):
    problem = found(machine)["Training cannot run here"]
    assert "needle-tui[train]" in problem.fix


def test_a_second_owner_of_the_name_needle_is_told(machine):
    machine.install(jax="0.10.2", cactus_needle="2.0.8")
    assert (
        "pip uninstall cactus-needle"
        in found(machine)["cactus-needle also provides a package named needle"].fix
    )


def inventory_with(*backends, problems=()):
    host = Host("box", 4, GIB, GIB)
    return Inventory(
        host, (Interpreter("/bin/python", "env", "3.12", {"jax": "0.10.2"}),), backends, problems
    )


def test_a_backend_that_a_probe_found_broken_is_a_finding_with_its_own_words():
    broken = Backend("cuda", "broken", reason="cuDNN 9.10 was loaded", fix="unset LD_LIBRARY_PATH")
    (problem,) = findings(inventory_with(broken, Backend("rocm", "absent", reason="none")))
    assert (problem.detail, problem.fix) == (broken.reason, broken.fix)


def test_the_machines_findings_come_after_what_cannot_run():
    told = findings(
        inventory_with(Backend("cuda", "broken", reason="x"), problems=(Problem("limit", "", ""),))
    )
    assert [problem.title for problem in told] == ["NVIDIA GPU (CUDA) cannot be used", "limit"]


@pytest.mark.parametrize(
    ("status", "can"), [("works", True), ("untried", True), ("broken", False), ("absent", False)]
)
def test_training_can_run_when_some_backend_may_work(status, can):
    assert can_train(inventory_with(Backend("tpu", "broken"), Backend("cpu", status))) is can
