"""Findings about a machine that need no probe: drivers, wheels, locks, limits, the environment."""

from __future__ import annotations

from collections.abc import Mapping

from needle.devices.explain import BOTH_WHEELS_FIX
from needle.devices.hints import Hints
from needle.devices.holders import LOCK_FILE, tpu_holders
from needle.devices.memory import MACHINE, HostMemory
from needle.devices.platforms import (
    CUDA12_DRIVER,
    CUDA13_DRIVER,
    METAL_JAX,
    driver_major,
    install_command,
    short_path,
    version_tuple,
)
from needle.devices.probing import both_wheels
from needle.devices.records import Interpreter, Problem
from needle.devices.requirements import wanted_extra
from needle.devices.sight import Sight
from needle.devices.variables import (
    FRACTION,
    OLD_FRACTION,
    OVERRULED,
    has_pip_cuda,
    split_library_path,
)
from needle.devices.visible import hides_all
from needle.units import bytes_text

_METAL_NEWEST = (0, 5, 0)
_NEEDLE_OWNERS = ("needle", "cactus-needle")


def machine_findings(seen: Sight) -> tuple[Problem, ...]:
    """Findings that need no probe: drivers, wheels that do not go together, limits, the environment."""
    environment = seen.surroundings.environment
    candidates = (
        _old_driver(seen),
        _both_wheels(seen.interpreter),
        _metal_pair(seen),
        _two_needles(seen),
        *_tpu_findings(seen),
        _memory_limit(seen.memory),
        _hidden_devices(seen.hints, environment),
        _library_path(seen.hints, seen.interpreter, environment),
        _two_fractions(environment),
        *(_old_variable(name, environment) for name in OVERRULED),
    )
    return tuple(problem for problem in candidates if problem is not None)


def _old_driver(seen: Sight) -> Problem | None:
    """Rows 1 and 24: CUDA 12 wheels need driver 525, CUDA 13 wheels 580."""
    driver = seen.hints.nvidia_driver
    major = driver_major(driver)
    if major is None:
        return None
    needs = [
        (f"CUDA {cuda}", least)
        for cuda, least in ((13, CUDA13_DRIVER), (12, CUDA12_DRIVER))
        if any(name.startswith(f"jax-cuda{cuda}") for name in seen.interpreter.packages) and major < least
    ]
    if not needs and major >= CUDA12_DRIVER:
        return None
    build, least = needs[0] if needs else ("any CUDA", CUDA12_DRIVER)
    fix = f"update the driver to {least} or newer"
    if least == CUDA13_DRIVER and major >= CUDA12_DRIVER:
        fix += f", or install the CUDA 12 build: {seen.install('gpu')}"
    return Problem(
        "The NVIDIA driver is too old",
        f"driver {driver}; the {build} build of JAX needs {least} or newer",
        fix,
    )


def _both_wheels(interpreter: Interpreter) -> Problem | None:
    """Row 21."""
    if not both_wheels(interpreter.packages):
        return None
    names = [name for name in sorted(interpreter.packages) if name.startswith(("jax-cuda", "jax-rocm"))]
    return Problem(
        "CUDA and ROCm builds of JAX share one environment",
        f"{', '.join(names)}: JAX loads both and crashes",
        BOTH_WHEELS_FIX,
    )


def _metal_pair(seen: Sight) -> Problem | None:
    """Rows 14 and 15: jax-metal stops at jax 0.4.38, at best 0.5.0."""
    packages = seen.interpreter.packages
    jax = packages.get("jax", "")
    if "jax-metal" not in packages or version_tuple(jax) <= _METAL_NEWEST:
        return None
    install = install_command("python", "metal", source=seen.source)
    return Problem(
        "jax-metal and jax do not belong together",
        f"jax-metal {packages['jax-metal']} with jax {jax}; it works up to jax {METAL_JAX}",
        f"make an environment for Metal of its own, then: {install}",
    )


def _two_needles(seen: Sight) -> Problem | None:
    packages = seen.interpreter.packages
    owner = next((name for name in _NEEDLE_OWNERS if name in packages), None)
    if owner is None:
        return None
    python = short_path(seen.interpreter.path)
    again = seen.install(wanted_extra(packages))
    return Problem(
        f"{owner} also provides a package named needle",
        f"{owner} {packages[owner]} and needle-tui overwrite each other's files",
        f"uninstall it, then install needle-tui again: {python} -m pip uninstall {owner}; "
        f"{again} --force-reinstall --no-deps",
    )


def _tpu_findings(seen: Sight) -> list[Problem]:
    """Rows 11 and 13: a TPU serves one process, and a lock of another user may outlive its process."""
    if not seen.hints.tpu_chips:
        return []
    held = tpu_holders(seen.surroundings.root)
    if held.processes:
        who = ", ".join(f"{process.name or 'a process'} (pid {process.pid})" for process in held.processes)
        pids = ",".join(str(process.pid) for process in held.processes)
        return [
            Problem(
                "The TPU is held by another process",
                f"{who}; a TPU serves one process at a time",
                f"wait for it, or end it if it is yours: ps -fp {pids}",
            )
        ]
    if held.lock_owner in (None, seen.surroundings.user):
        return []
    return [
        Problem(
            "Another user's lock of the TPU is left",
            f"/{LOCK_FILE} belongs to {_user_name(held.lock_owner)}; no process is seen with the TPU open",
            f"if `sudo lsof /dev/accel* /dev/vfio/*` shows none: sudo rm /{LOCK_FILE}",
        )
    ]


def _user_name(number: int | None) -> str:
    try:
        import pwd

        return pwd.getpwuid(number or 0).pw_name
    except (ImportError, KeyError):
        return f"user {number}"


def _memory_limit(memory: HostMemory) -> Problem | None:
    if memory.limit_source == MACHINE:
        return None
    return Problem(
        "Memory is limited below the machine's",
        f"{bytes_text(memory.total_bytes)} of {bytes_text(memory.machine_bytes)} may be used "
        f"({memory.limit_source}); going over it kills the run without a word",
        "ask for more memory when starting the container or job, if a run does not fit",
    )


def _hidden_devices(hints: Hints, environment: Mapping[str, str]) -> Problem | None:
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if not hints.nvidia_nodes or not hides_all(visible):
        return None
    return Problem(
        "Every NVIDIA GPU is hidden",
        f"CUDA_VISIBLE_DEVICES is {visible!r}",
        "unset CUDA_VISIBLE_DEVICES, or name a device: CUDA_VISIBLE_DEVICES=0",
    )


def _library_path(hints: Hints, interpreter: Interpreter, environment: Mapping[str, str]) -> Problem | None:
    """Row 22: libraries named there come before the wheels' own."""
    value = environment.get("LD_LIBRARY_PATH", "")
    if not value or not (hints.nvidia_nodes or has_pip_cuda(interpreter.packages)):
        return None
    _, removed = split_library_path(value, interpreter.packages)
    if has_pip_cuda(interpreter.packages):
        done = f"runs and probes go without {':'.join(removed)}" if removed else "it is left as it is"
    else:
        done = "it is left as it is: this environment has no CUDA libraries of its own"
    return Problem(
        "LD_LIBRARY_PATH is set",
        f"{value}: libraries found there hide those that came with JAX; {done}",
        "unset LD_LIBRARY_PATH where it is not needed",
    )


def _two_fractions(environment: Mapping[str, str]) -> Problem | None:
    if not (environment.get(FRACTION) and environment.get(OLD_FRACTION)):
        return None
    return Problem(
        f"{OLD_FRACTION} and {FRACTION} are both set",
        f"JAX refuses to start with both; runs keep {FRACTION}={environment[FRACTION]}",
        f"unset {OLD_FRACTION}",
    )


def _old_variable(name: str, environment: Mapping[str, str]) -> Problem | None:
    value = environment.get(name)
    if not value:
        return None
    return Problem(
        f"{name} is set",
        f"{name}={value}: {OVERRULED[name]}; runs go without it",
        f"unset {name}" + (f" and say JAX_PLATFORMS={value} instead" if name == "JAX_PLATFORM_NAME" else ""),
    )
