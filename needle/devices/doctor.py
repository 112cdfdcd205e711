"""Findings in plain words, each with what to do about it. Pure functions of what was seen."""

from __future__ import annotations

from collections.abc import Mapping

from needle.devices.explain import BOTH_WHEELS_FIX
from needle.devices.hints import Hints
from needle.devices.memory import MACHINE, HostMemory
from needle.devices.platforms import (
    CUDA12_DRIVER,
    CUDA13_DRIVER,
    METAL_JAX,
    driver_major,
    install_command,
    platform_label,
    version_tuple,
)
from needle.devices.probing import both_wheels
from needle.devices.records import Interpreter, Inventory, Problem
from needle.devices.variables import (
    FRACTION,
    OLD_FRACTION,
    OVERRULED,
    has_pip_cuda,
    hides_all,
    split_library_path,
)
from needle.units import bytes_text

_METAL_NEWEST = (0, 5, 0)
_NEEDLE_OWNERS = ("needle", "cactus-needle")


def findings(inventory: Inventory) -> tuple[Problem, ...]:
    """Everything worth telling, the gravest first: what cannot run, then what may mislead."""
    found: dict[str, Problem] = {}
    for interpreter in inventory.interpreters[:1]:
        if interpreter.problem:
            fix = install_command(interpreter.path, "train")
            found["jax"] = Problem(
                "Training cannot run here", f"{interpreter.label}: {interpreter.problem}", fix
            )
    for backend in inventory.backends:
        if backend.status == "broken":
            title = f"{platform_label(backend.platform)} cannot be used"
            found[title] = Problem(title, backend.reason, backend.fix)
    for problem in inventory.problems:
        found.setdefault(problem.title, problem)
    return tuple(found.values())


def can_train(inventory: Inventory) -> bool:
    """Whether some backend works, or may work and was not tried yet."""
    return any(backend.status in ("works", "untried") for backend in inventory.backends)


def machine_findings(
    hints: Hints, interpreter: Interpreter, memory: HostMemory, environment: Mapping[str, str]
) -> tuple[Problem, ...]:
    """Findings that need no probe: drivers, wheels that do not go together, limits, the environment."""
    candidates = (
        _old_driver(hints, interpreter),
        _both_wheels(interpreter),
        _metal_pair(interpreter),
        _two_needles(interpreter),
        _memory_limit(memory),
        _hidden_devices(hints, environment),
        _library_path(hints, interpreter, environment),
        _two_fractions(environment),
        *(_old_variable(name, environment) for name in OVERRULED),
    )
    return tuple(problem for problem in candidates if problem is not None)


def _old_driver(hints: Hints, interpreter: Interpreter) -> Problem | None:
    """Rows 1 and 24: CUDA 12 wheels need driver 525, CUDA 13 wheels 580."""
    major = driver_major(hints.nvidia_driver)
    if major is None:
        return None
    needs = [
        (f"CUDA {cuda}", least)
        for cuda, least in ((13, CUDA13_DRIVER), (12, CUDA12_DRIVER))
        if any(name.startswith(f"jax-cuda{cuda}") for name in interpreter.packages) and major < least
    ]
    if not needs and major >= CUDA12_DRIVER:
        return None
    build, least = needs[0] if needs else ("any CUDA", CUDA12_DRIVER)
    fix = f"update the driver to {least} or newer"
    if least == CUDA13_DRIVER and major >= CUDA12_DRIVER:
        fix += f", or install the CUDA 12 build: {install_command(interpreter.path, 'gpu')}"
    return Problem(
        "The NVIDIA driver is too old",
        f"driver {hints.nvidia_driver}; the {build} build of JAX needs {least} or newer",
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


def _metal_pair(interpreter: Interpreter) -> Problem | None:
    """Rows 14 and 15: jax-metal stops at jax 0.4.38, at best 0.5.0."""
    jax = interpreter.packages.get("jax", "")
    if "jax-metal" not in interpreter.packages or version_tuple(jax) <= _METAL_NEWEST:
        return None
    return Problem(
        "jax-metal and jax do not belong together",
        f"jax-metal {interpreter.packages['jax-metal']} with jax {jax}; it works up to jax {METAL_JAX}",
        f"make an environment for Metal of its own, then: {install_command('python', 'metal')}",
    )


def _two_needles(interpreter: Interpreter) -> Problem | None:
    owner = next((name for name in _NEEDLE_OWNERS if name in interpreter.packages), None)
    if owner is None:
        return None
    return Problem(
        f"{owner} also provides a package named needle",
        f"{owner} {interpreter.packages[owner]} and needle-tui overwrite each other's files",
        f"uninstall it, then install needle-tui again: pip uninstall {owner}",
    )


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
