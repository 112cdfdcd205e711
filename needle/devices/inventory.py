"""What this machine has: at once from static hints, soon after from probes, next time from the cache."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from queue import SimpleQueue

from needle.devices import cache
from needle.devices.doctor import machine_findings
from needle.devices.explain import CANNOT_INSTALL, Circumstances
from needle.devices.memory import device_samples
from needle.devices.platforms import PLATFORMS, platform_label
from needle.devices.probing import TIME_LIMIT_S, Outcome, cancel_probes, run_probe
from needle.devices.records import Backend, Device, Host, Interpreter, Inventory, Problem, Status
from needle.devices.sight import NO_JAX, Sight, Surroundings, look
from needle.devices.variables import hides_all, visible_indexes

UNSETTLED_S = 600.0
"""How long a hang or a crash is believed before it is asked again."""


def static_inventory(surroundings: Surroundings | None = None) -> Inventory:
    """What can be seen without JAX, a child process or touching a device. Backends are untried."""
    return _inventory(look(surroundings or Surroundings()))


def cached_inventory(surroundings: Surroundings | None = None) -> Inventory | None:
    """The static inventory with the last probes' answers; None when none ran or something changed since.

    Memory in use on accelerators is left open: asking their drivers would cost the first paint.
    """
    seen = look(surroundings or Surroundings())
    entry = cache.load(seen.cache_file(), seen.key(), time.time())
    if entry is None:
        return None
    known = {backend.platform: _with_host_memory(backend, seen) for backend in entry.backends}
    static = _inventory(seen)
    merged = tuple(known.pop(backend.platform, backend) for backend in static.backends)
    return replace(static, backends=(*merged, *known.values()), probed_at=entry.probed_at)


def probe_platform(
    platform: str,
    interpreter: Interpreter,
    *,
    timeout_s: float = TIME_LIMIT_S,
    surroundings: Surroundings | None = None,
) -> Backend:
    """Ask one interpreter about one platform, in a child that ends within `timeout_s`."""
    seen = look(surroundings or Surroundings())
    return _probed(platform, interpreter, seen, timeout_s).backend


def probed_inventory(
    static: Inventory,
    *,
    on_backend: Callable[[Backend], None] | None = None,
    in_use: Collection[str] = (),
    timeout_s: float = TIME_LIMIT_S,
    surroundings: Surroundings | None = None,
) -> Inventory:
    """Probe the CPU and every platform with a hint, side by side, and save the answers.

    `on_backend` is called here, in this thread, as each answer comes. Platforms named in `in_use` are left
    alone: a live run holds them.
    """
    seen = look(surroundings or Surroundings())
    wanted = [
        backend.platform
        for backend in static.backends
        if backend.platform not in in_use and _worth_probing(backend.platform, seen)
    ]
    answers: SimpleQueue[Outcome] = SimpleQueue()
    for platform in wanted:
        threading.Thread(
            target=lambda name: answers.put(_surely_probed(name, static.interpreters[0], seen, timeout_s)),
            args=(platform,),
            name=f"probe-{platform}",
            daemon=True,
        ).start()
    outcomes: dict[str, Outcome] = {}
    for _ in wanted:
        outcome = answers.get()
        outcomes[outcome.backend.platform] = outcome
        if on_backend is not None:
            on_backend(outcome.backend)
    return _completed(static, outcomes, seen)


def _inventory(seen: Sight) -> Inventory:
    host = Host(
        name=os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", ""),
        cores=_cores(),
        memory_total_bytes=seen.memory.total_bytes,
        memory_available_bytes=seen.memory.available_bytes,
    )
    problems = machine_findings(seen.hints, seen.interpreter, seen.memory, seen.surroundings.environment)
    backends = tuple(_static_backend(name, seen) for name in PLATFORMS)
    return Inventory(host, (seen.interpreter,), backends, problems)


def _static_backend(platform: str, seen: Sight) -> Backend:
    """What the hints say of one platform: hardware here, a build of JAX for it here, both or neither."""
    hardware = seen.hints.hardware(platform)
    build = seen.build(platform)
    install = _circumstances(seen).install(platform)
    fix = "" if install == CANNOT_INSTALL else install
    status: Status
    visible = seen.surroundings.environment.get("CUDA_VISIBLE_DEVICES")
    if platform == "cuda" and hardware and hides_all(visible):
        reason = f"{hardware} is here, hidden by CUDA_VISIBLE_DEVICES={visible!r}"
        return Backend(platform, "absent", (), reason, "unset CUDA_VISIBLE_DEVICES")
    if hardware and build:
        status, reason, fix = "untried", f"{hardware}; {build}", ""
    elif platform == "cpu":
        status, reason = "absent", NO_JAX
    elif hardware and not seen.interpreter.packages.get("jax"):
        status, reason = "broken", f"{hardware} is here; {NO_JAX}"
    elif hardware:
        status, reason = "broken", f"{hardware} is here, but this JAX has no build for it"
    elif build:
        status, reason, fix = "absent", f"{build} is installed, but no {_hardware_name(platform)} is seen", ""
    else:
        status, reason, fix = "absent", f"no {_hardware_name(platform)} is seen", ""
    return Backend(platform, status, _hinted_devices(platform, seen) if hardware else (), reason, fix)


def _circumstances(seen: Sight) -> Circumstances:
    around = seen.surroundings
    return Circumstances(around.python, seen.hints.nvidia_driver, around.environment, around.system)


def _hardware_name(platform: str) -> str:
    return platform_label(platform).partition(" (")[0]


def _hinted_devices(platform: str, seen: Sight) -> tuple[Device, ...]:
    """Devices as JAX would number them, as far as names were seen."""
    hints, memory = seen.hints, seen.memory
    if platform == "cpu":
        return (Device("cpu:0", "cpu", hints.cpu_model or "cpu", 0, memory.total_bytes, memory.used_bytes),)
    if platform == "METAL":
        return (Device("METAL:0", "METAL", "Apple GPU", 0, memory.total_bytes),)
    names = {
        "cuda": hints.nvidia_names,
        "rocm": ("AMD GPU",) * hints.amd_gpus,
        "tpu": (hints.tpu_kind,) * hints.tpu_chips,
    }.get(platform, ())
    visible = seen.surroundings.environment.get("CUDA_VISIBLE_DEVICES") if platform == "cuda" else None
    indexes = visible_indexes(visible, len(names))
    chosen = names if indexes is None else [names[index] for index in indexes]
    return tuple(Device(f"{platform}:{place}", platform, name, place) for place, name in enumerate(chosen))


def _worth_probing(platform: str, seen: Sight) -> bool:
    """The CPU always; another platform when its hardware or a build for it is here and JAX is."""
    if platform == "cpu":
        return True
    if platform == "cuda" and hides_all(seen.surroundings.environment.get("CUDA_VISIBLE_DEVICES")):
        return False
    has_jax = "jax" in seen.interpreter.packages
    return has_jax and bool(seen.hints.hardware(platform) or seen.build(platform))


def _probed(platform: str, interpreter: Interpreter, seen: Sight, timeout_s: float) -> Outcome:
    outcome = run_probe(
        platform,
        interpreter.path,
        packages=interpreter.packages,
        driver=seen.hints.nvidia_driver,
        environment=seen.surroundings.environment,
        timeout_s=timeout_s,
    )
    backend = _with_host_memory(outcome.backend, seen)
    return replace(outcome, backend=_with_driver_memory(backend, seen.surroundings.environment))


def _surely_probed(platform: str, interpreter: Interpreter, seen: Sight, timeout_s: float) -> Outcome:
    """An outcome whatever happens: the thread that waits for it must not wait for ever."""
    try:
        return _probed(platform, interpreter, seen, timeout_s)
    except Exception as error:
        return Outcome(Backend(platform, "broken", reason=f"the probe failed: {error}"), settled=False)


def _with_driver_memory(backend: Backend, environment: Mapping[str, str]) -> Backend:
    """NVIDIA devices with the whole device's memory: JAX tells only what its own process may take."""
    if backend.platform != "cuda" or not backend.devices:
        return backend
    samples = {sample.id: sample for sample in device_samples(environment)}
    devices = []
    for device in backend.devices:
        sample = samples.get(device.id)
        if sample is not None:
            device = replace(device, total_bytes=sample.total_bytes, used_bytes=sample.used_bytes)
        devices.append(device)
    return replace(backend, devices=tuple(devices))


def _with_host_memory(backend: Backend, seen: Sight) -> Backend:
    """Devices that share the host's memory say so; what others used when probed is no longer known."""
    shared = backend.platform in ("cpu", "METAL")
    kind = seen.hints.cpu_model if backend.platform == "cpu" else ""
    devices = tuple(
        replace(
            device,
            kind=kind or device.kind,
            total_bytes=seen.memory.total_bytes if shared else device.total_bytes,
            used_bytes=seen.memory.used_bytes if shared else None,
        )
        for device in backend.devices
    )
    return replace(backend, devices=devices)


def _completed(static: Inventory, outcomes: Mapping[str, Outcome], seen: Sight) -> Inventory:
    probed_at = time.time()
    backends = tuple(
        outcomes[backend.platform].backend if backend.platform in outcomes else backend
        for backend in static.backends
    )
    _remember(outcomes, seen, probed_at)
    return replace(static, backends=backends, probed_at=probed_at)


def _remember(outcomes: Mapping[str, Outcome], seen: Sight, probed_at: float) -> None:
    """Save these answers beside what is still valid of the earlier ones; hangs and crashes not for long."""
    asked = [outcome for outcome in outcomes.values() if outcome.backend.status != "untried"]
    earlier = cache.load(seen.cache_file(), seen.key(), probed_at)
    kept = [known for known in earlier.backends if known.platform not in outcomes] if earlier else []
    if not asked:
        return
    valid_until = 0.0 if all(outcome.settled for outcome in asked) else probed_at + UNSETTLED_S
    backends = (*kept, *(outcome.backend for outcome in asked))
    cache.save(seen.cache_file(), cache.Entry(seen.key(), probed_at, backends, valid_until))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


__all__ = [
    "Backend",
    "Device",
    "Host",
    "Interpreter",
    "Inventory",
    "Problem",
    "Surroundings",
    "cached_inventory",
    "cancel_probes",
    "probe_platform",
    "probed_inventory",
    "static_inventory",
]
