"""`needle devices`: the inventory and the doctor's findings. Exit status 0 when training can run here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from needle.commands.printing import print_json
from needle.devices.doctor import can_train, findings, users_text
from needle.devices.inventory import Backend, Device, Interpreter, Inventory, inventory_from
from needle.devices.platforms import canonical_platform
from needle.launch.inventory import known_machine, probed_everywhere, probed_machine
from needle.launch.live import live_uses, with_live_uses
from needle.units import bytes_text

SCHEMA_VERSION = 1
_GLYPHS = {"works": "ok", "broken": "FAILS", "untried": "not tried", "absent": "-"}


def run(arguments: argparse.Namespace) -> int:
    """Print what is here. Returns 1 when training cannot run in any interpreter that was found."""
    inventory = _looked_at(arguments)
    if arguments.json:
        print_json(document(inventory))
    else:
        print("\n".join(inventory_lines(inventory)))
    return 0 if can_train(inventory) else 1


def document(inventory: Inventory) -> dict[str, object]:
    """What `--json` prints; docs/troubleshooting.md says what each part means and what stays."""
    return {
        "schema": SCHEMA_VERSION,
        "can_train": can_train(inventory),
        "findings": findings(inventory),
        "inventory": inventory,
    }


def inventory_lines(inventory: Inventory) -> list[str]:
    """The machine, each interpreter with its backends, then each finding with its fix."""
    host = inventory.host
    lines = [
        f"{host.name}: {host.cores} cores, {bytes_text(host.memory_available_bytes)} free of "
        f"{bytes_text(host.memory_total_bytes)}"
    ]
    for place, interpreter in enumerate(inventory.interpreters):
        lines += ["", *_interpreter_lines(interpreter, used=place == 0)]
        backends = inventory.backends_of(interpreter)
        shown = backends if place == 0 else [one for one in backends if one.status != "absent"]
        lines += [line for backend in shown for line in _backend_lines(backend)]
    for problem in findings(inventory):
        lines += ["", problem.title, f"  {problem.detail}", f"  fix: {problem.fix}"]
    return lines


def _looked_at(arguments: argparse.Namespace) -> Inventory:
    """What is remembered with --cached, else probed now: one interpreter, or all of them."""
    machine = known_machine()
    if arguments.python:
        machine = with_live_uses(inventory_from(arguments.python), live_uses())
    if arguments.cached and machine.probed_at:
        return machine
    print("probing …", file=sys.stderr)
    if arguments.all:
        machine = probed_everywhere(machine, on_backend=_say_probed)
        return machine if not arguments.backend else _tried(machine, arguments.backend)
    return _tried(machine, arguments.backend)


def _tried(machine: Inventory, backend: str) -> Inventory:
    asked = [canonical_platform(backend)] if backend else []
    return probed_machine(
        machine, on_backend=_say_probed, python=machine.interpreters[0].path, platforms=asked
    )


def _interpreter_lines(interpreter: Interpreter, *, used: bool) -> list[str]:
    packages = ", ".join(f"{name} {version}" for name, version in sorted(interpreter.packages.items()))
    mark = "*" if used else " "
    lines = [f"python {mark} {interpreter.label}  {interpreter.python}  {packages or 'no JAX'}"]
    if interpreter.problem:
        lines.append(f"        {interpreter.problem}")
        if not used:
            lines.append(f"        fix: {interpreter.fix}")
    return lines


def _backend_lines(backend: Backend) -> list[str]:
    lines = [f"{backend.platform:<7} {_GLYPHS[backend.status]:<9} {backend.reason}"]
    if backend.held_by:
        lines.append(f"        in use by run {backend.held_by}, so it was not probed")
    lines += _device_lines(backend.devices)
    lines += [f"{line}  (hidden from JAX)" for line in _device_lines(backend.hidden)]
    if backend.fix and backend.status == "broken":
        lines.append(f"        fix: {backend.fix}")
    return lines


def _device_lines(devices: Iterable[Device]) -> list[str]:
    """`cuda:0  NVIDIA H200  60.0 of 139 GiB in use by python3 (pid 12)`."""
    return [f"        {device.id}  {device.kind}  {_memory_text(device)}".rstrip() for device in devices]


def _memory_text(device: Device) -> str:
    if not device.total_bytes:
        return ""
    total = bytes_text(device.total_bytes) + (" shared with the host" if device.unified else "")
    if device.used_bytes is None:
        return total
    who = users_text(device)
    return f"{bytes_text(device.used_bytes)} of {total} in use" + (f" by {who}" if who else "")


def _say_probed(backend: Backend) -> None:
    print(f"  {backend.platform}: {backend.status}", file=sys.stderr)
