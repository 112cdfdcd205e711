"""Which of the packages that matter to JAX an interpreter has, read from directory names alone.

`importlib.metadata` would open every distribution; names and versions are in the directories' names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

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
    """Versions by normalised name, modules that register JAX plugins, directories that hold packages.

    `needle_source` is where needle-tui was installed from, as a requirement says it: a directory, an
    address, empty for a package index.
    """

    versions: dict[str, str] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    needle_source: str = ""
    has_pip: bool = False

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
    found: dict[str, tuple[str, Path]] = {}
    namespaces: list[Path] = []
    directories: list[str] = []
    for directory in dict.fromkeys(import_path):
        try:
            entries = sorted(entry.name for entry in os.scandir(directory or "."))
        except OSError:
            continue
        distributions = [match for entry in entries if (match := _INFO.match(entry))]
        for match in distributions:
            name = re.sub(r"[-_.]+", "-", match["name"]).lower()
            found.setdefault(name, (match["version"], Path(directory) / match.string))
        if "jax_plugins" in entries:
            namespaces.append(Path(directory) / "jax_plugins")
        if distributions or "jax_plugins" in entries:
            directories.append(directory)
    own = found.get("needle-tui")
    return Packages(
        {name: version for name, (version, _) in found.items() if _matters(name)},
        _plugins(found, namespaces) if "jax" in found else (),
        tuple(directories),
        _source(own[1]) if own else "",
        "pip" in found,
    )


def changed_at_ns(directories: Iterable[str]) -> tuple[int, ...]:
    """When each directory last gained or lost an entry; 0 for one that is gone."""
    times = []
    for directory in directories:
        try:
            times.append(os.stat(directory or ".").st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def _matters(name: str) -> bool:
    return name in _WANTED or name.startswith(_WANTED_STARTS)


def _plugins(found: Mapping[str, tuple[str, Path]], namespaces: Iterable[Path]) -> tuple[str, ...]:
    """Modules that JAX will load as plugins: named by entry points, or below its namespace."""
    plugins: dict[str, None] = {}
    for name, (_, path) in found.items():
        if "jax" in name or name not in _WANTED:
            plugins.update(dict.fromkeys(_entry_points(path)))
    for directory in namespaces:
        plugins.update(dict.fromkeys(_namespace_plugins(directory)))
    return tuple(plugins)


def _entry_points(distribution: Path) -> list[str]:
    text = read_text(distribution / "entry_points.txt")
    if _PLUGIN_GROUP not in text:
        return []
    section = text.split(_PLUGIN_GROUP, 1)[1].split("[", 1)[0]
    parts = (line.partition("=") for line in section.splitlines())
    return [module.strip() for _, equals, module in parts if equals]


def _source(distribution: Path) -> str:
    """Where a distribution came from, by PEP 610: `-e /path`, `/path`, `git+https://…@commit`, or empty."""
    try:
        told = json.loads(read_text(distribution / "direct_url.json") or "{}")
        url = str(told.get("url", ""))
        if "vcs_info" in told:
            return f"{told['vcs_info']['vcs']}+{url}@{told['vcs_info']['commit_id']}"
        if url.startswith("file://") and "dir_info" in told:
            path = unquote(urlsplit(url).path)
            return f"-e {path}" if told["dir_info"].get("editable") else path
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return url


def _namespace_plugins(directory: Path) -> list[str]:
    try:
        names = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    except OSError:
        return []
    return [f"jax_plugins.{name}" for name in names if not name.startswith(("_", "."))]
