"""Variables that a child must not inherit, and the environment of a probe."""

import pytest

from needle.devices.probing import probe_environment
from needle.devices.variables import set_aside, split_library_path

WHEELS = {"nvidia-cudnn-cu12": "9.13"}


@pytest.mark.parametrize(
    "name", ["JAX_PLATFORM_NAME", "JAX_XLA_BACKEND", "JAX_BACKEND_TARGET", "JAX_DEFAULT_DEVICE"]
)
def test_what_would_steer_jax_elsewhere_is_set_aside(name):
    assert set_aside(name, {name: "gpu"})


def test_an_empty_jax_variable_is_set_aside_and_a_filled_one_is_not():
    inherited = {"JAX_ENABLE_X64": " ", "JAX_DEBUG_NANS": "1", "XLA_FLAGS": ""}
    assert [bool(set_aside(name, inherited)) for name in inherited] == [True, False, False]


def test_of_two_memory_fractions_the_deprecated_one_goes():
    both = {"XLA_CLIENT_MEM_FRACTION": ".5", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}
    assert not set_aside("XLA_CLIENT_MEM_FRACTION", both)
    assert set_aside("XLA_PYTHON_CLIENT_MEM_FRACTION", both)
    assert not set_aside("XLA_PYTHON_CLIENT_MEM_FRACTION", {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"})


@pytest.mark.parametrize(
    ("value", "packages", "kept", "removed"),
    [
        ("/usr/local/cuda-12.1/lib64", WHEELS, "", ("/usr/local/cuda-12.1/lib64",)),
        ("/opt/cudnn/lib:/opt/gcc/lib64:", WHEELS, "/opt/gcc/lib64", ("/opt/cudnn/lib",)),
        ("/usr/local/nvidia/lib64:/usr/lib/wsl/lib", WHEELS, "/usr/local/nvidia/lib64:/usr/lib/wsl/lib", ()),
        ("/usr/local/cuda-12.1/lib64", {}, "/usr/local/cuda-12.1/lib64", ()),
    ],
    ids=["toolkit", "mixed", "driver-of-gke-and-wsl", "no-cuda-wheels"],
)
def test_only_toolkits_that_hide_the_wheels_leave_the_library_path(value, packages, kept, removed):
    assert split_library_path(value, packages) == (kept, removed)


def test_a_probe_starts_one_platform_and_reserves_no_memory():
    inherited = {"PATH": "/bin", "JAX_PLATFORMS": "cpu", "JAX_PLATFORM_NAME": "gpu", "XLA_FLAGS": "--a"}
    environment = probe_environment("cuda", inherited, WHEELS)
    assert environment["JAX_PLATFORMS"] == "cuda"
    assert environment["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert environment["PATH"] == "/bin"
    assert environment["XLA_FLAGS"] == "--a"
    assert "JAX_PLATFORM_NAME" not in environment
    assert "ENABLE_PJRT_COMPATIBILITY" not in environment


def test_a_probe_of_metal_asks_for_pjrt_compatibility():
    assert probe_environment("METAL", {}, {})["ENABLE_PJRT_COMPATIBILITY"] == "1"


def test_a_probe_of_cuda_goes_without_the_toolkit_in_the_library_path_and_others_keep_it():
    inherited = {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"}
    assert "LD_LIBRARY_PATH" not in probe_environment("cuda", inherited, WHEELS)
    assert probe_environment("cpu", inherited, WHEELS)["LD_LIBRARY_PATH"] == "/usr/local/cuda/lib64"


def test_no_variable_of_a_probe_is_empty_unless_it_was_inherited_so():
    assert all(probe_environment("cpu", {}, {}).values())
