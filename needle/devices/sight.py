"""Everything that is read from this machine for one inventory: quick, and touching no device."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from needle.devices import cache, probe
from needle.devices.environments import Environment, environments_at_hand
from needle.devices.hints import Hints, read_hints, read_text
from needle.devices.memory import HostMemory, host_memory
from needle.devices.nvml import driver_version
from needle.devices.packages import Packages, changed_at_ns, installed_packages
from needle.devices.platforms import PLATFORMS, current_directory, extra_for, install_command
from needle.devices.records import Interpreter
from needle.devices.requirements import LEAST_TEXT, age_problem, needle_problem, shortcoming, wanted_extra
from needle.version import VERSION


@dataclass(frozen=True)
class Surroundings:
    """Where the inventory looks: by default this process and this machine; tests point elsewhere.

    `python`, `python_version`, `prefix` and `import_path` are those of the interpreter looked at.
    """

    root: Path = Path("/")
    system: str = sys.platform
    architecture: str = field(default_factory=lambda: os.uname().machine if hasattr(os, "uname") else "")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    python: str = sys.executable
    python_version: str = ".".join(str(number) for number in sys.version_info[:3])
    prefix: str = sys.prefix
    import_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))
    cache_directory: Path | None = None
    directory: Path = field(default_factory=current_directory)
    home: Path = field(default_factory=Path.home)
    user: int = field(default_factory=lambda: os.getuid() if hasattr(os, "getuid") else 0)


@dataclass(frozen=True)
class Sight:
    """Everything read from this machine for one interpreter. `source` is where needle-tui comes from."""

    surroundings: Surroundings
    hints: Hints
    interpreter: Interpreter
    packages: Packages
    memory: HostMemory
    source: str = ""

    def build(self, platform: str) -> str:
        """The installed package that serves a platform; empty when it, or JAX, is missing."""
        jax = self.packages.versions.get("jax", "")
        if not jax:
            return ""
        return f"jax {jax}" if platform == "cpu" else self.packages.plugin_for(platform)

    def install(self, extra: str) -> str:
        """The line that installs an extra of needle-tui into this interpreter."""
        one = self.interpreter
        return install_command(one.path, extra, installer=one.installer, source=self.source)

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
    """Read hints, packages and host memory for the interpreter of these surroundings. Starts nothing."""
    hints = read_hints(surroundings.root, surroundings.system, surroundings.architecture)
    if hints.nvidia_nodes and not hints.nvidia_driver and surroundings.root == Path("/"):
        # Under WSL the driver publishes nothing below /proc.
        hints = replace(hints, nvidia_driver=driver_version())
    packages = installed_packages(surroundings.import_path)
    interpreter = Interpreter(
        path=surroundings.python,
        label=_label(surroundings),
        python=surroundings.python_version,
        packages=packages.versions,
        problem=shortcoming(packages.versions),
    )
    seen = Sight(
        surroundings, hints, interpreter, packages, host_memory(surroundings.root), packages.needle_source
    )
    return _with_fix(seen, is_this=True)


def look_around(first: Sight) -> tuple[Sight, ...]:
    """The same machine from every other interpreter at hand."""
    around = first.surroundings
    found = environments_at_hand(around.directory, around.home, around.environment, besides=around.prefix)
    labels = {first.interpreter.label}
    sights = []
    for environment in found:
        if environment.label in labels:
            environment = replace(environment, label=environment.prefix)
        labels.add(environment.label)
        sights.append(look_from(first, environment))
    return tuple(sights)


def look_from(first: Sight, environment: Environment) -> Sight:
    """The same machine from another interpreter, which is not started."""
    extra_path = [
        part for part in first.surroundings.environment.get("PYTHONPATH", "").split(os.pathsep) if part
    ]
    around = replace(
        first.surroundings,
        python=environment.python,
        python_version=environment.version,
        prefix=environment.prefix,
        import_path=(*extra_path, *environment.import_path),
    )
    packages = installed_packages(around.import_path)
    own_problem = environment.problem or age_problem(environment.version)
    interpreter = Interpreter(
        path=environment.python,
        label=environment.label,
        python=environment.version,
        packages=packages.versions,
        problem=own_problem
        or shortcoming(packages.versions)
        or needle_problem(packages.versions, extra_path),
        installer="pip" if packages.has_pip else "uv" if environment.uses_uv else "ensurepip",
    )
    if own_problem:
        interpreter = replace(interpreter, fix=f"make an environment with Python {LEAST_TEXT} or newer")
    return _with_fix(replace(first, surroundings=around, interpreter=interpreter, packages=packages))


def _with_fix(seen: Sight, *, is_this: bool = False) -> Sight:
    """With the line that solves what keeps this interpreter from training."""
    one = seen.interpreter
    if not one.problem or one.fix:
        return seen
    extra = wanted_extra(one.packages, _extra_here(seen.hints))
    version = "" if is_this else VERSION
    fix = install_command(one.path, extra, installer=one.installer, source=seen.source, version=version)
    return replace(seen, interpreter=replace(one, fix=fix))


def _extra_here(hints: Hints) -> str:
    """The extra for the best hardware that was seen."""
    seen = next((name for name in PLATFORMS if name != "cpu" and hints.hardware(name)), "cpu")
    return extra_for(seen, hints.nvidia_driver)


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
