"""Every test has its own home for caches, the index of runs, and runs; none sees the person's own."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of this test only, for everything that would otherwise be written to the person's home."""
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    for name in (
        "NEEDLE_RUNS",
        "NEEDLE_RUN",
        "NEEDLE_ATTEMPT",
        "NEEDLE_GLYPHS",
        "JAX_PLATFORMS",
        "JAX_PLATFORM_NAME",
    ):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def golden() -> Path:
    """Reference inputs and outputs of a published implementation."""
    return GOLDEN


@pytest.fixture
def wait_for() -> Callable[..., None]:
    """Wait for a condition instead of sleeping; fails with words when it does not come true in time."""

    def wait(condition: Callable[[], object], what: str, within_s: float = 30.0) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"{what} did not happen within {within_s:g} s")
            time.sleep(0.02)

    return wait
