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


def install_command(
    python: str, extra: str, *, installer: str = "pip", source: str = "", version: str = ""
) -> str:
    """The exact line that installs an extra into this interpreter.

    `installer` is `pip`, `uv`, or `ensurepip` where pip must come first. `source` is where needle-tui comes
    from, as `Packages.needle_source` says it; `version` pins it.
    """
    wanted = f"needle-tui[{extra}]"
    if source.startswith(("-e ", "/")):
        path = source.removeprefix("-e ")
        requirement = ("-e " if path != source else "") + shlex.quote(f"{path}[{extra}]")
    elif source:
        requirement = shlex.quote(f"{wanted} @ {source}")
    else:
        requirement = shlex.quote(f"{wanted}=={version}" if version else wanted)
    program = short_path(python)
    if installer == "uv":
        return f"uv pip install --python {program} {requirement}"
    line = f"{program} -m pip install {requirement}"
    return f"{program} -m ensurepip && {line}" if installer == "ensurepip" else line


def short_path(path: str) -> str:
    """A path as a shell accepts it: relative below the current directory, `~/…` below the home."""
    here, home = str(current_directory()), str(Path.home())
    if path.startswith(here.rstrip("/") + "/"):
        return shlex.quote(os.path.relpath(path, here))
    if path.startswith(home.rstrip("/") + "/") and shlex.quote(path) == path:
        return "~" + path.removeprefix(home.rstrip("/"))
    return shlex.quote(path)


def current_directory() -> Path:
    """Where this process is; the root where its directory was deleted under it."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


def version_tuple(version: str) -> tuple[int, ...]:
    """`0.4.38.dev1` -> (0, 4, 38); what is not a number ends it."""
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
