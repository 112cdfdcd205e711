"""What the choices of interpreter, platform and devices come to in a plan."""

from dataclasses import replace

import pytest

from needle.config import FinetuneSettings
from needle.data.base import BaseFacts
from needle.data.examples import ExampleFile
from needle.data.parsing import parse_example
from needle.data.report import report_on
from needle.devices.records import Backend, Device, Host, Interpreter, Inventory
from needle.errors import InputError
from needle.launch.plan import make_plan
from needle.launch.preflight import DataFacts, FinetuneFacts

GIB = 1 << 30
CPU = Backend("cpu", "works", (Device("cpu:0", "cpu", "cpu", 0, 64 * GIB, GIB),), "right")
CUDA = Backend(
    "cuda",
    "works",
    tuple(
        Device(f"cuda:{at}", "cuda", "NVIDIA H200", at, 139 * GIB, used * GIB, "9.0")
        for at, used in enumerate((70, 1))
    ),
    "right",
    bfloat16=True,
)
METAL = Backend(
    "METAL", "works", (Device("METAL:0", "METAL", "Apple M4", 0, 64 * GIB, 16 * GIB, unified=True),), "right"
)
THIS = Interpreter("/p/.venv/bin/python", ".venv", "3.11.7", {"jax": "0.10.2"})
GPU = Interpreter(
    "/p/.venv-gpu/bin/python", ".venv-gpu", "3.12.4", {"jax": "0.4.30", "nvidia-cudnn-cu12": "9.13"}
)
MACHINE = Inventory(
    Host("box", 8, 64 * GIB, 48 * GIB), (THIS, GPU), (CPU,), elsewhere={GPU.path: (CUDA, CPU)}
)


def plan(machine=MACHINE, inherited=None, facts=None, **settings):
    return make_plan(FinetuneSettings(**settings), machine, facts or FinetuneFacts(), inherited or {})


def value(plan, name):
    return {variable.name: variable.value for variable in plan.environment}.get(name)


def test_switching_from_the_cpu_to_the_gpu_is_a_choice_of_interpreter():
    here, there = plan(), plan(python=".venv-gpu")
    assert (here.backend.choice, here.command[0], here.precision.choice) == (
        "cpu",
        "/p/.venv/bin/python",
        "float32",
    )
    assert (there.backend.choice, there.command[0], there.precision.choice) == (
        "cuda",
        "/p/.venv-gpu/bin/python",
        "bfloat16",
    )
    assert there.interpreter == there.python.choice == ".venv-gpu"
    assert there.versions == {"python": "3.12.4", **GPU.packages}
    assert there.command_line[-2:] == ("--python", ".venv-gpu")


def test_the_environment_is_planned_for_the_packages_and_the_jax_of_the_interpreter():
    inherited = {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"}
    there = plan(python=".venv-gpu", inherited=inherited)
    assert value(there, "JAX_PLATFORMS") == "cuda,cpu"
    assert ("LD_LIBRARY_PATH", None) in [(one.name, one.value) for one in there.environment]
    # JAX 0.4.30 reads the older name only.
    assert value(there, "XLA_PYTHON_CLIENT_MEM_FRACTION") == "0.44"
    assert value(there, "XLA_CLIENT_MEM_FRACTION") is None


def test_the_devices_chosen_are_shown_in_pci_order_and_the_first_is_reckoned_with():
    there = plan(python=".venv-gpu", devices="1")
    assert (value(there, "CUDA_VISIBLE_DEVICES"), value(there, "CUDA_DEVICE_ORDER")) == ("1", "PCI_BUS_ID")
    assert there.devices.choice == "cuda:1"
    assert value(there, "XLA_PYTHON_CLIENT_MEM_FRACTION") is None, "cuda:1 is free"


def test_nothing_chosen_shows_the_first_only():
    assert value(plan(python=".venv-gpu"), "CUDA_VISIBLE_DEVICES") == "0"
    assert value(plan(), "CUDA_VISIBLE_DEVICES") is None


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"python": ".venv-tpu"}, "python"),
        ({"devices": "1"}, "devices"),
        ({"backend": "a b"}, "backend"),
        ({"python": ".venv-gpu", "devices": "cuda:5"}, "devices"),
    ],
)
def test_what_this_machine_lacks_is_an_error_at_its_field(settings, field):
    with pytest.raises(InputError) as caught:
        plan(**settings)
    assert caught.value.field == field


def test_memory_shared_with_the_host_is_said_to_be():
    example = parse_example({"query": "q", "tools": [], "answers": []}, 1).example
    report = report_on(ExampleFile("d", 10, [example]), [])
    facts = FinetuneFacts(
        data=DataFacts(
            "d", 10, 10, 10, (), (), (), longest=100, total_tokens=1000, counted=True, report=report
        ),
        base=BaseFacts("b", 10, 10, 10, 64, 2, 8, 4, 64, "safetensors"),
    )
    apple = replace(MACHINE, backends=(METAL, CPU))
    bill = plan(apple, facts=facts).memory
    assert bill.where == "METAL:0 (unified with the host's)"
    assert (bill.limit_bytes, bill.used_by_others_bytes) == (64 * GIB, 16 * GIB)


def test_flags_of_the_run_join_those_of_the_environment():
    inherited = {"XLA_FLAGS": "--xla_a=1"}
    assert value(plan(xla_flags="--xla_b=2", inherited=inherited), "XLA_FLAGS") == "--xla_a=1 --xla_b=2"
