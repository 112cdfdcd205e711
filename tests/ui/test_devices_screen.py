"""The Devices screen: interpreters and what works in each, who uses a device, what is hidden."""

from __future__ import annotations

from dataclasses import replace

import pytest

from needle.devices.records import Backend, Device, DeviceProcess, Interpreter, Inventory
from needle_tui.app import NeedleApp
from needle_tui.context import Context
from tests.ui.reading import Until, screen_text
from tests.ui.recorded import GIB

OLD = Interpreter("/home/ada/.venv-old/bin/python", ".venv-old", "3.11.9", {"jax": "0.4.38"})
ALIEN = Interpreter(
    "/opt/alien/bin/python",
    "alien",
    "3.12.1",
    {"jax": "0.9.0"},
    "needle-tui is not installed here",
    "pip install it",
)
BARE = Interpreter(
    "/opt/bare/bin/python", "bare", "3.13.0", {}, "JAX is not installed here", "pip install that"
)


@pytest.fixture
def several(inventory: Inventory) -> Inventory:
    """The machine with three more interpreters, a busy GPU of a live run, and a hidden one."""
    cuda = inventory.backends[0]
    busy = replace(cuda.devices[0], processes=(DeviceProcess(4242, "python3", 59 * GIB),))
    hidden = Device("GPU 2", "cuda", "NVIDIA T4", 2)
    held = replace(cuda, devices=(busy, *cuda.devices[1:]), hidden=(hidden,), held_by="20261201-a")
    return replace(
        inventory,
        interpreters=(*inventory.interpreters, OLD, ALIEN, BARE),
        backends=(held, *inventory.backends[1:]),
        elsewhere={OLD.path: (Backend("cpu", "untried"), Backend("cuda", "absent"))},
    )


async def test_each_interpreter_is_shown_with_what_works_in_it(
    context: Context, several: Inventory, until: Until
) -> None:
    app = NeedleApp(
        replace(context, known_inventory=lambda: several, probe=lambda *_: several), start="devices"
    )
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: "alien" in screen_text(app), "the interpreters")
        text = screen_text(app)
        assert "jax 0.4.38" in text
        assert "cpu untried" in text
        assert "needle-tui is not installed here" in text
        assert "fix: pip install it" in text
        assert "Python 3.13.0  no JAX" in text
        assert "pip install that" not in text


async def test_who_uses_a_device_and_what_is_hidden_is_told(
    context: Context, several: Inventory, until: Until
) -> None:
    app = NeedleApp(
        replace(context, known_inventory=lambda: several, probe=lambda *_: several), start="devices"
    )
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: "in use by run 20261201-a" in screen_text(app), "the run")
        text = screen_text(app)
        assert "cuda:0: python3 (pid 4242) 59.0 GiB" in text
        assert "GPU 2 NVIDIA T4 is hidden from JAX" in text


async def test_one_key_probes_every_interpreter(context: Context, several: Inventory, until: Until) -> None:
    tried = replace(several, elsewhere={OLD.path: (Backend("cpu", "works"),)})
    app = NeedleApp(
        replace(
            context,
            known_inventory=lambda: several,
            probe=lambda *_: several,
            probe_all=lambda *_: tried,
        ),
        start="devices",
    )
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: app.inventory is not None and not app.probing, "the first look")
        await pilot.press("a")
        await until(pilot, lambda: "cpu works" in screen_text(app), "the answer of the other interpreter")
        assert not app.probing
