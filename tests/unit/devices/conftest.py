"""Machines made of plain files, so that what reads device nodes and drivers reads something real."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from needle.devices.sight import Surroundings

GIB = 1 << 30
NVIDIA_DRIVER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (dvs)\n"
NVIDIA_CARD = "Model: \t\t {name}\nIRQ:   \t\t 0\nGPU UUID: \t GPU-{uuid}\nBus Location: \t 0000:{bus}:00.0\n"


class Machine:
    """A directory that stands for `/`, and an import path with installed packages."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        self.packages = directory / "site-packages"
        self.directory = directory
        self.write("proc/meminfo", f"MemTotal: {64 * GIB // 1024} kB\nMemAvailable: {48 * GIB // 1024} kB\n")
        self.write("proc/cpuinfo", "processor : 0\nmodel name : Test CPU 3000\n")
        self.write("proc/sys/kernel/random/boot_id", "boot-one\n")
        self.packages.mkdir()
        (directory / "project").mkdir()

    def write(self, path: str, text: str = "") -> Path:
        """A file below the root, with its directories."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def nvidia(self, *names: str, driver: str = "580.65.06") -> "Machine":
        """Cards with this driver: device nodes and what the driver publishes under /proc."""
        self.write("dev/nvidiactl")
        self.write("proc/driver/nvidia/version", NVIDIA_DRIVER.format(version=driver))
        for number, name in enumerate(names):
            self.write(f"dev/nvidia{number}")
            text = NVIDIA_CARD.format(name=name, uuid=f"{number}aaa", bus=f"{number:02x}")
            self.write(f"proc/driver/nvidia/gpus/0000:{number:02x}:00.0/information", text)
        return self

    def install(self, *, alone: bool = False, **versions: str) -> "Machine":
        """Packages by name (`_` as in the directory's name) and version; jax brings what training needs."""
        install_into(self.packages, alone=alone, **versions)
        return self

    def environment(
        self, name: str, *, python: str = "3.12.4", below: str = "project", **versions: str
    ) -> Path:
        """A virtual environment beside the project, with packages; its interpreter is never started."""
        prefix = self.directory / below / name
        make_environment(prefix, python, **versions)
        return prefix

    def surroundings(
        self, *, system: str = "linux", environment: Mapping[str, str] | None = None
    ) -> Surroundings:
        """The inventory's view of this machine."""
        return Surroundings(
            root=self.root,
            system=system,
            architecture="arm64" if system == "darwin" else "x86_64",
            environment=dict(environment or {}),
            python="/this/.venv/bin/python",
            python_version="3.11.7",
            prefix="/this/.venv",
            import_path=(str(self.packages),),
            cache_directory=self.directory / "cache",
            directory=self.directory / "project",
            home=self.directory,
            user=1000,
        )


def install_into(packages: Path, *, alone: bool = False, **versions: str) -> None:
    """The metadata of installed packages; `alone` without what training needs beside jax."""
    companions = {"flax": "0.12.1", "optax": "0.2.6", "safetensors": "0.6", "sentencepiece": "0.2"}
    brought = companions if "jax" in versions and not alone else {}
    for name, version in {**brought, **versions}.items():
        (packages / f"{name}-{version}.dist-info").mkdir(parents=True)


def make_environment(prefix: Path, python: str = "3.12.4", **versions: str) -> None:
    """A virtual environment as `venv` makes it, but for its interpreter, which is an empty program."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text(f"home = /opt/python/bin\nversion = {python}\n")
    program = prefix / "bin/python"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    minor = ".".join(python.split(".")[:2])
    packages = prefix / f"lib/python{minor}/site-packages"
    packages.mkdir(parents=True)
    install_into(packages, **versions)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a CPU, 64 GiB of memory, and nothing installed."""
    return Machine(tmp_path)


@pytest.fixture
def another_machine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Machine]:
    """More machines, for comparisons."""
    return lambda: Machine(tmp_path_factory.mktemp("machine"))
