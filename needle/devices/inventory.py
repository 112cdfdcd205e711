"""What this machine has: at once from static hints, soon after from probes, next time from the cache."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from needle.devices import cache
from needle.devices.checks import machine_findings
from needle.devices.driver_memory import with_driver_memory
from needle.devices.environments import environment_at
from needle.devices.memory import device_samples
from needle.devices.platforms import current_directory
from needle.devices.probing import TIME_LIMIT_S, Outcome, cancel_probes, probe_side_by_side
from needle.devices.records import Backend, Device, Host, Interpreter, Inventory, Problem
from needle.devices.sight import Sight, Surroundings, look, look_around, look_from
from needle.devices.static import circumstances, static_backends, worth_probing
from needle.errors import InputError

UNSETTLED_S = 600.0
"""How long a hang or a crash is believed before it is asked again."""


def static_inventory(surroundings: Surroundings | None = None) -> Inventory:
    """What can be seen without JAX, a child process or touching a device. Backends are untried."""
    return _inventory(_sights(surroundings))


def cached_inventory(surroundings: Surroundings | None = None) -> Inventory | None:
    """The static inventory with the last probes' answers; None when none ran or something changed since.

    Memory in use on accelerators is left open: asking their drivers would cost the first paint.
    """
    known = known_inventory(surroundings)
    return known if known.probed_at else None


def known_inventory(surroundings: Surroundings | None = None) -> Inventory:
    """Everything known without a probe: what is remembered of each interpreter, else its static hints."""
    return _known(_sights(surroundings))


def inventory_from(python: str, surroundings: Surroundings | None = None) -> Inventory:
    """What is known, without a probe, as seen from the interpreter that `python` names.

    `python` is one of the labels, a path to an interpreter or to its environment, or a program's name; empty
    for the one in use. Raises InputError at the field `python` when there is no such interpreter.
    """
    sights = _sights(surroundings)
    named = interpreter_named(python, _inventory(sights))
    if named is None:
        labels = [one.interpreter.label for one in sights]
        chosen = _sight_at(python, surroundings or Surroundings(), labels)
    else:
        chosen = next(seen for seen in sights if seen.interpreter.path == named.path)
    return _known((chosen, *(seen for seen in sights if seen is not chosen)))


def interpreter_named(text: str, inventory: Inventory) -> Interpreter | None:
    """Which of these interpreters a label or a path means; the first when nothing is said. Reads no file."""
    if not text:
        return inventory.interpreters[0]
    by_label = {one.label: one for one in reversed(inventory.interpreters)}
    path = os.path.normpath(current_directory() / Path(text).expanduser())
    by_path = {
        meant: one
        for one in reversed(inventory.interpreters)
        for meant in (one.path, str(Path(one.path).parent.parent))
    }
    return by_label.get(text) or by_path.get(path)


def probe_platform(
    platform: str,
    interpreter: Interpreter,
    *,
    timeout_s: float = TIME_LIMIT_S,
    surroundings: Surroundings | None = None,
) -> Backend:
    """Ask one interpreter about one platform, in a child that ends within `timeout_s`."""
    seen = _sight_of(interpreter, _sights(surroundings), surroundings)
    (outcome,) = _ask((platform,), seen, timeout_s, None).values()
    return outcome.backend


def probed_inventory(
    static: Inventory,
    *,
    on_backend: Callable[[Backend], None] | None = None,
    in_use: Collection[str] = (),
    python: str = "",
    platforms: Collection[str] = (),
    timeout_s: float = TIME_LIMIT_S,
    surroundings: Surroundings | None = None,
) -> Inventory:
    """Probe the CPU and every platform with a hint, side by side, and save the answers.

    Of the interpreter in use, or of the one whose path is `python`; `platforms` are tried whatever the hints
    say. `on_backend` is called here, in this thread, as each answer comes. Platforms named in `in_use` are
    left alone: a live run holds them.
    """
    interpreter = next((one for one in static.interpreters if one.path == python), static.interpreters[0])
    seen = _sight_of(interpreter, _sights(surroundings), surroundings)
    known = static.backends_of(interpreter)
    named = dict.fromkeys((*(backend.platform for backend in known), *platforms))
    wanted = [name for name in named if name in platforms or worth_probing(name, seen)]
    outcomes = _ask([name for name in wanted if name not in in_use], seen, timeout_s, on_backend)
    probed_at = time.time()
    _remember(outcomes, seen, probed_at)
    answers = {name: outcome.backend for name, outcome in outcomes.items()}
    backends = tuple(answers.pop(backend.platform, backend) for backend in known)
    inventory = static.with_backends(interpreter, (*backends, *answers.values()))
    return with_device_use(replace(inventory, probed_at=probed_at), seen.surroundings.environment)


def with_device_use(inventory: Inventory, environment: Mapping[str, str] | None = None) -> Inventory:
    """With the memory of NVIDIA devices as it is now, and who uses it. Needs no JAX."""
    samples = device_samples(os.environ if environment is None else environment)
    for interpreter in inventory.interpreters if samples else ():
        backends = tuple(
            with_driver_memory(backend, samples) for backend in inventory.backends_of(interpreter)
        )
        inventory = inventory.with_backends(interpreter, backends)
    return inventory


def _sights(surroundings: Surroundings | None) -> tuple[Sight, ...]:
    """This machine from every interpreter at hand; first the one in use.

    That is this one when it can train, else the first that can and was not found broken.
    """
    first = look(surroundings or Surroundings())
    sights = (first, *look_around(first))
    if not first.interpreter.problem:
        return sights
    able = [seen for seen in sights if not seen.interpreter.problem]
    chosen = min(able, key=_known_broken, default=first)
    return (chosen, *(seen for seen in sights if seen is not chosen))


def _known_broken(seen: Sight) -> bool:
    entry = _recall(seen)
    return entry is not None and not any(backend.status == "works" for backend in entry.backends)


def _sight_of(
    interpreter: Interpreter, sights: tuple[Sight, ...], surroundings: Surroundings | None
) -> Sight:
    """The sight of an interpreter of an inventory, looked at anew where it is not among those at hand."""
    known = next((seen for seen in sights if seen.interpreter.path == interpreter.path), None)
    if known is not None:
        return known
    around = surroundings or Surroundings()
    try:
        return look_from(sights[0], environment_at(interpreter.path, around.directory, around.environment))
    except InputError:
        # It cannot even be started; the probe will say so.
        return replace(
            sights[0], surroundings=replace(around, python=interpreter.path), interpreter=interpreter
        )


def _sight_at(text: str, around: Surroundings, labels: list[str]) -> Sight:
    try:
        environment = environment_at(text, around.directory, around.environment)
    except InputError as error:
        close = difflib.get_close_matches(text, labels, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"found here: {', '.join(labels)}"
        raise InputError(error.message, remedy=remedy, field="python") from None
    return look_from(look(around), environment)


def _known(sights: tuple[Sight, ...]) -> Inventory:
    """The static inventory with what is remembered; `probed_at` is about the interpreter in use."""
    inventory = _inventory(sights)
    for place, seen in enumerate(sights):
        entry = _recall(seen)
        if entry is not None:
            backends = _remembered(inventory.backends_of(seen.interpreter), entry, seen)
            inventory = inventory.with_backends(seen.interpreter, backends)
            if place == 0:
                inventory = replace(inventory, probed_at=entry.probed_at)
    return inventory


def _inventory(sights: tuple[Sight, ...]) -> Inventory:
    seen = sights[0]
    host = Host(
        name=os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", ""),
        cores=_cores(),
        memory_total_bytes=seen.memory.total_bytes,
        memory_available_bytes=seen.memory.available_bytes,
    )
    return Inventory(
        host,
        tuple(one.interpreter for one in sights),
        static_backends(seen),
        machine_findings(seen),
        elsewhere={one.interpreter.path: static_backends(one) for one in sights[1:]},
    )


def _ask(
    platforms: Collection[str], seen: Sight, timeout_s: float, on_backend: Callable[[Backend], None] | None
) -> dict[str, Outcome]:
    """The outcome for each platform; `on_backend` hears each as it comes."""
    outcomes: dict[str, Outcome] = {}
    answers = probe_side_by_side(
        platforms, circumstances(seen), packages=seen.interpreter.packages, timeout_s=timeout_s
    )
    for outcome in answers:
        samples = device_samples(seen.surroundings.environment) if outcome.backend.platform == "cuda" else []
        backend = with_driver_memory(_as_of_now(outcome.backend, seen), samples)
        outcomes[backend.platform] = replace(outcome, backend=backend)
        if on_backend is not None:
            on_backend(backend)
    return outcomes


def _as_of_now(backend: Backend, seen: Sight) -> Backend:
    """Devices that share the host's memory say so; what others used when probed is no longer known."""
    shared = backend.platform in ("cpu", "METAL")
    kind = seen.hints.cpu_model if backend.platform == "cpu" else ""
    devices = tuple(
        replace(
            device,
            kind=kind or device.kind,
            total_bytes=seen.memory.total_bytes if shared else device.total_bytes,
            used_bytes=seen.memory.used_bytes if shared else None,
            unified=backend.platform == "METAL",
            processes=(),
        )
        for device in backend.devices
    )
    return replace(backend, devices=devices)


def _recall(seen: Sight) -> cache.Entry | None:
    return cache.load(seen.cache_file(), seen.key(), time.time())


def _remembered(backends: tuple[Backend, ...], entry: cache.Entry, seen: Sight) -> tuple[Backend, ...]:
    """These backends with what was learnt of them, and of others that were asked for by name."""
    known = {backend.platform: _as_of_now(backend, seen) for backend in entry.backends}
    merged = []
    for backend in backends:
        answer = known.pop(backend.platform, None)
        merged.append(replace(answer, hidden=backend.hidden) if answer else backend)
    return (*merged, *known.values())


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
    "interpreter_named",
    "inventory_from",
    "known_inventory",
    "probe_platform",
    "probed_inventory",
    "static_inventory",
    "with_device_use",
]
