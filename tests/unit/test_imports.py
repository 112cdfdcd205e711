"""Each room, imported in a fresh interpreter, loads only what it may."""

import subprocess
import sys

import pytest

JAX = {"jax", "jaxlib", "flax", "optax"}
ROOMS_WITHOUT_JAX_OR_TEXTUAL = [
    "needle",
    "needle.cli",
    "needle.config",
    "needle.commands.finetune",
    "needle.commands.devices",
    "needle.commands.runs",
    "needle.commands.follow",
    "needle.devices.inventory",
    "needle.devices.doctor",
    "needle.devices.memory",
    "needle.data.examples",
    "needle.data.packing",
    "needle.data.tokenizer",
    "needle.runs.reader",
    "needle.runs.supervisor",
    "needle.launch.plan",
    "needle.launch.preflight",
    "needle.launch.start",
]
COCKPIT = [
    "needle_tui.app",
    "needle_tui.screens.launch",
    "needle_tui.screens.monitor",
    "needle_tui.screens.runs",
]


def loaded_by(module: str) -> set[str]:
    script = f"import sys, {module}; print(' '.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ROOMS_WITHOUT_JAX_OR_TEXTUAL)
def test_a_room_loads_neither_jax_nor_textual(module):
    assert loaded_by(module).isdisjoint(JAX | {"textual"})


@pytest.mark.parametrize("module", COCKPIT)
def test_the_cockpit_never_loads_jax(module):
    assert loaded_by(module).isdisjoint(JAX)


@pytest.mark.parametrize("module", ["needle", "needle.runs.supervisor", "needle.runs.index"])
def test_what_the_supervisor_loads_has_no_numpy(module):
    assert "numpy" not in loaded_by(module)


@pytest.mark.parametrize("module", ["needle.model", "needle.train.finetune"])
def test_the_training_side_never_loads_textual(module):
    assert "textual" not in loaded_by(module)
