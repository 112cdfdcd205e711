"""The cockpit under test: real screens and records, with the clock, host and devices held still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from textual.pilot import Pilot

from needle.devices.records import Backend, Device, Host, Interpreter, Inventory
from needle_tui.app import NeedleApp
from needle_tui.context import Context
from tests.ui.reading import Until
from tests.ui.recorded import GIB, NOW


@pytest.fixture(autouse=True)
def still_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One picture on every machine: braille, no animation."""
    monkeypatch.setenv("NEEDLE_GLYPHS", "braille")
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture
def inventory() -> Inventory:
    """A machine with two GPUs, one of them busy, and a TPU plugin without a TPU."""
    gpus = tuple(
        Device(f"cuda:{at}", "cuda", "NVIDIA H200", at, 139 * GIB, used, "9.0")
        for at, used in enumerate((61 * GIB, GIB // 2))
    )
    cpu = Device("cpu:0", "cpu", "cpu", 0, 128 * GIB, 31 * GIB)
    return Inventory(
        host=Host("gpu-box", 16, 128 * GIB, 97 * GIB),
        interpreters=(
            Interpreter("/home/ada/.venv/bin/python", ".venv", "3.12.4", {"jax": "0.10.2", "flax": "0.12.1"}),
        ),
        backends=(
            Backend(
                "cuda", "works", gpus, "2 devices: an operation and its gradient were right", bfloat16=True
            ),
            Backend("cpu", "works", (cpu,), "an operation and its gradient were right"),
            Backend("tpu", "broken", (), "libtpu is installed but there is no TPU", "pip uninstall libtpu"),
            Backend("METAL", "absent", (), "only on macOS"),
        ),
        probed_at=NOW - 300,
    )


@pytest.fixture
def runs_directory(tmp_path: Path) -> Path:
    """An empty directory for runs."""
    directory = tmp_path / "runs"
    directory.mkdir()
    return directory


@pytest.fixture
def context(runs_directory: Path, inventory: Inventory) -> Context:
    """Everything that moves, held still."""
    return Context(
        runs_directory,
        host="gpu-box",
        environment={"TERM": "xterm-256color", "COLORTERM": "truecolor"},
        now=lambda: NOW,
        known_inventory=lambda: inventory,
        probe=lambda known, tell: inventory,
    )


@pytest.fixture
def cockpit(context: Context) -> Callable[..., NeedleApp]:
    """Makes an app that starts on a screen."""

    def make(start: str = "launch", run: Path | None = None) -> NeedleApp:
        return NeedleApp(context, start=start, run=run)

    return make


@pytest.fixture
def until() -> Until:
    """Wait for a condition while the app goes on; fails with words when it does not come true."""

    async def wait(
        pilot: Pilot[Any], condition: Callable[[], object], what: str, within_s: float = 20.0
    ) -> None:
        deadline = monotonic() + within_s
        while not condition():
            if monotonic() > deadline:
                pytest.fail(f"{what} did not happen within {within_s:g} s")
            await pilot.pause(0.02)
        await pilot.pause()

    return wait
