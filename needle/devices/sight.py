"""Everything that is read from this machine for one inventory: quick, and touching no device."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from needle.devices import cache, probe
from needle.devices.hints import Hints, read_hints, read_text
from needle.devices.memory import HostMemory, host_memory
from needle.devices.nvml import driver_version
from needle.devices.packages import Packages, changed_at_ns, installed_packages
from needle.devices.records import Interpreter

NO_JAX = "JAX is not installed here"


@dataclass(frozen=True)
class Surroundings:
    """Where the inventory looks: by default this process and this machine; tests point elsewhere."""

    root: Path = Path("/")
    system: str = sys.platform
    architecture: str = field(default_factory=lambda: os.uname().machine if hasattr(os, "uname") else "")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    python: str = sys.executable
    prefix: str = sys.prefix
    import_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    cache_directory: Path | None = None


@dataclass(frozen=True)
class Sight:
    """Everything read from this machine for one inventory."""

    surroundings: Surroundings
    hints: Hints
    interpreter: Interpreter
    packages: Packages
    memory: HostMemory

    def build(self, platform: str) -> str:
        """The installed package that serves a platform; empty when it, or JAX, is missing."""
        jax = self.packages.versions.get("jax", "")
        if not jax:
            return ""
        return f"jax {jax}" if platform == "cpu" else self.packages.plugin_for(platform)

    def cache_file(self) -> Path:
        """Where this interpreter's last answers are kept."""
        return cache.cache_file(self.surroundings.cache_directory, self.surroundings.python)

    def key(self) -> str:
        """What changes the answer: interpreter, packages, hardware, driver, this boot, the probe itself."""
        told = (
            self.interpreter.path,
            self.interpreter.python,
            self.packages,
            changed_at_ns(self.packages.directories),
            self.hints,
            _boot_id(self.surroundings),
            os.stat(probe.__file__).st_mtime_ns,
        )
        return cache.key_of(told, self.surroundings.environment)


def look(surroundings: Surroundings) -> Sight:
    """Read hints, packages and host memory. Starts nothing."""
    hints = read_hints(surroundings.root, surroundings.system, surroundings.architecture)
    if hints.nvidia_nodes and not hints.nvidia_driver and surroundings.root == Path("/"):
        # Under WSL the driver publishes nothing below /proc.
        hints = replace(hints, nvidia_driver=driver_version())
    packages = installed_packages(surroundings.import_path)
    interpreter = Interpreter(
        path=surroundings.python,
        label=_label(surroundings),
        python=".".join(str(number) for number in sys.version_info[:3]),
        packages=packages.versions,
        problem="" if "jax" in packages.versions else NO_JAX,
    )
    return Sight(surroundings, hints, interpreter, packages, host_memory(surroundings.root))


def _boot_id(surroundings: Surroundings) -> str:
    told = read_text(surroundings.root / "proc/sys/kernel/random/boot_id").strip()
    if told:
        return told
    import psutil

    return f"{psutil.boot_time():.0f}"


def _label(surroundings: Surroundings) -> str:
    """`.venv` for an environment, `python3.11` otherwise."""
    if (Path(surroundings.prefix) / "pyvenv.cfg").exists():
        return Path(surroundings.prefix).name
    return surroundings.environment.get("CONDA_DEFAULT_ENV") or Path(surroundings.python).name
