"""Which of the packages that matter to JAX an interpreter has, read from directory names alone.

`importlib.metadata` would open every distribution; names and versions are in the directories' names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from needle.devices.hints import read_text
from needle.devices.platforms import plugin_marks

_WANTED = frozenset({
    "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "ml-dtypes", "safetensors",
    "sentencepiece", "needle-tui", "needle", "cactus-needle", "libtpu", "libtpu-nightly", "jax-metal",
})  # fmt: skip
_WANTED_STARTS = (
    "jax-cuda",
    "jax-rocm",
    "jax-oneapi",
    "nvidia-cudnn",
    "nvidia-cuda-runtime",
    "nvidia-cuda-nvcc",
)
_INFO = re.compile(r"^(?P<name>[A-Za-z0-9._]+?)-(?P<version>[^-]+)(?:-[^-]*)?\.(?:dist|egg)-info$")
_PLUGIN_GROUP = "[jax_plugins]"


@dataclass(frozen=True)
class Packages:
    """Versions by normalised name, modules that register JAX plugins, directories that hold packages."""

    versions: dict[str, str] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()

    def plugin_for(self, platform: str) -> str:
        """The package or module that brings this platform to JAX, with its version; empty when none does."""
        marks = plugin_marks(platform)
        candidates = [name for name in self.versions if name.startswith(("jax-", "libtpu"))]
        for name in sorted(candidates, key=lambda name: (not name.endswith("-plugin"), name)):
            if any(mark in name for mark in marks):
                return f"{name} {self.versions[name]}"
        return next((module for module in self.plugins if any(mark in module.lower() for mark in marks)), "")


def installed_packages(import_path: Iterable[str]) -> Packages:
    """Look through the directories of an interpreter's import path; the first mention of a name counts."""
    versions: dict[str, str] = {}
    plugins: dict[str, None] = {}
    directories: list[str] = []
    for directory in dict.fromkeys(import_path):
        try:
            entries = sorted(entry.name for entry in os.scandir(directory or "."))
        except OSError:
            continue
        distributions = [found for entry in entries if (found := _INFO.match(entry))]
        for found in distributions:
            _note_distribution(Path(directory) / found.string, found, versions, plugins)
        if "jax_plugins" in entries:
            plugins.update(dict.fromkeys(_namespace_plugins(Path(directory) / "jax_plugins")))
        if distributions or "jax_plugins" in entries:
            directories.append(directory)
    return Packages(versions, tuple(plugins), tuple(directories))


def changed_at_ns(directories: Iterable[str]) -> tuple[int, ...]:
    """When each directory last gained or lost an entry; 0 for one that is gone."""
    times = []
    for directory in directories:
        try:
            times.append(os.stat(directory or ".").st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def _note_distribution(
    path: Path, found: re.Match[str], versions: dict[str, str], plugins: dict[str, None]
) -> None:
    name = re.sub(r"[-_.]+", "-", found["name"]).lower()
    if name in _WANTED or name.startswith(_WANTED_STARTS):
        versions.setdefault(name, found["version"])
    entry_points = path / "entry_points.txt"
    text = read_text(entry_points) if "jax" in name or name not in _WANTED else ""
    if _PLUGIN_GROUP in text:
        section = text.split(_PLUGIN_GROUP, 1)[1].split("[", 1)[0]
        for line in section.splitlines():
            _, equals, module = line.partition("=")
            if equals:
                plugins[module.strip()] = None


def _namespace_plugins(directory: Path) -> list[str]:
    try:
        names = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    except OSError:
        return []
    return [f"jax_plugins.{name}" for name in names if not name.startswith(("_", "."))]
