"""Every test has its own home for caches, the index of runs, and runs; none sees the person's own."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"

# Most of the time of these tests is compiling; what is compiled runs for a moment. Set before JAX is loaded.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)


FOREIGN = (
    "NEEDLE_RUNS",
    "NEEDLE_RUN",
    "NEEDLE_ATTEMPT",
    "NEEDLE_GLYPHS",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
)
HOMES = ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")


@pytest.fixture(scope="session", autouse=True)
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What fixtures that outlive one test write stays away from the person's home too."""
    with pytest.MonkeyPatch.context() as patch:
        move_home(patch, tmp_path_factory.mktemp("shared-home"))
        yield


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of this test only, for everything that would otherwise be written to the person's home."""
    home = tmp_path_factory.mktemp("home")
    move_home(monkeypatch, home)
    return home


def move_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    for name in HOMES:
        patch.setenv(name, str(home / name.lower()))
    for name in FOREIGN:
        patch.delenv(name, raising=False)


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
