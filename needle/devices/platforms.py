"""What is known of each JAX platform: its spelling, its packages, and the extra that installs it."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

CUDA12_DRIVER = 525
CUDA13_DRIVER = 580
METAL_JAX = "0.4.38"


@dataclass(frozen=True)
class Platform:
    """A platform as JAX spells it; case matters. `marks` are fragments of its plugins' names."""

    name: str
    label: str
    extra: str
    marks: tuple[str, ...]


PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        Platform("cuda", "NVIDIA GPU (CUDA)", "gpu", ("cuda",)),
        Platform("rocm", "AMD GPU (ROCm)", "rocm", ("rocm",)),
        Platform("tpu", "Google TPU", "tpu", ("libtpu", "tpu")),
        Platform("METAL", "Apple GPU (Metal)", "metal", ("metal",)),
        Platform("cpu", "CPU", "train", ()),
    )
}


def platform_label(name: str) -> str:
    """`NVIDIA GPU (CUDA)` for a platform this program knows, its own name otherwise."""
    return PLATFORMS[name].label if name in PLATFORMS else name


def plugin_marks(name: str) -> tuple[str, ...]:
    """Fragments that a plugin of this platform has in its name."""
    return PLATFORMS[name].marks if name in PLATFORMS else (name.lower(),)


def canonical_platform(text: str) -> str:
    """`Metal`, `CUDA `, `cpu,` as JAX would accept them; unknown names are left as they are."""
    name = text.strip().strip(",").strip()
    by_lower = {known.lower(): known for known in PLATFORMS}
    return by_lower.get(name.lower(), "gpu" if name.lower() == "gpu" else name)


def driver_major(driver: str) -> int | None:
    """`550.54.14` -> 550."""
    head = driver.partition(".")[0]
    return int(head) if head.isdigit() else None


def extra_for(platform: str, driver: str = "") -> str:
    """The extra of needle-tui that installs a JAX for this platform and NVIDIA driver."""
    if platform == "cuda":
        major = driver_major(driver)
        return "gpu13" if major is not None and major >= CUDA13_DRIVER else "gpu"
    return PLATFORMS[platform].extra if platform in PLATFORMS else "train"


def install_command(python: str, extra: str) -> str:
    """The exact line that installs an extra into this interpreter."""
    return f"{short_path(python)} -m pip install 'needle-tui[{extra}]'"


def short_path(path: str) -> str:
    """A path as a shell accepts it: relative below the current directory, `~/…` below the home."""
    here, home = os.getcwd(), str(Path.home())
    if path.startswith(here.rstrip("/") + "/"):
        return shlex.quote(os.path.relpath(path, here))
    if path.startswith(home.rstrip("/") + "/") and shlex.quote(path) == path:
        return "~" + path.removeprefix(home.rstrip("/"))
    return shlex.quote(path)


def version_tuple(version: str) -> tuple[int, ...]:
    """`0.4.38.dev1` -> (0, 4, 38); what is not a number ends it."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
