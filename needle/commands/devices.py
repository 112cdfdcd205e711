"""`needle devices`: the inventory and the doctor's findings. Exit status 0 when training can run here."""

from __future__ import annotations

import argparse
import sys

import msgspec

from needle.devices.doctor import can_train, findings
from needle.devices.inventory import Backend, Inventory, cached_inventory, probed_inventory, static_inventory
from needle.units import bytes_text

_GLYPHS = {"works": "ok", "broken": "FAILS", "untried": "not tried", "absent": "-"}


def run(arguments: argparse.Namespace) -> int:
    """Print what is here. Returns 1 when no backend works."""
    inventory = cached_inventory() if arguments.cached else None
    if inventory is None:
        print("probing …", file=sys.stderr)
        inventory = probed_inventory(static_inventory(), on_backend=_say_probed)
    works = can_train(inventory)
    if arguments.json:
        document = {"inventory": inventory, "findings": findings(inventory), "can_train": works}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    else:
        print("\n".join(inventory_lines(inventory)))
    return 0 if works else 1


def inventory_lines(inventory: Inventory) -> list[str]:
    """The machine, its interpreters and backends, then each finding with its fix."""
    host = inventory.host
    lines = [
        f"{host.name}: {host.cores} cores, {bytes_text(host.memory_available_bytes)} free of "
        f"{bytes_text(host.memory_total_bytes)}"
    ]
    for interpreter in inventory.interpreters:
        packages = ", ".join(f"{name} {version}" for name, version in sorted(interpreter.packages.items()))
        lines.append(f"python  {interpreter.label}  {interpreter.python}  {packages or 'no JAX'}")
        if interpreter.problem:
            lines.append(f"        {interpreter.problem}")
    for backend in inventory.backends:
        lines += _backend_lines(backend)
    for problem in findings(inventory):
        lines += ["", problem.title, f"  {problem.detail}", f"  fix: {problem.fix}"]
    return lines


def _backend_lines(backend: Backend) -> list[str]:
    lines = [f"{backend.platform:<7} {_GLYPHS[backend.status]:<9} {backend.reason}"]
    for device in backend.devices:
        total = bytes_text(device.total_bytes) if device.total_bytes else ""
        lines.append(f"        {device.id}  {device.kind}  {total}".rstrip())
    if backend.fix and backend.status == "broken":
        lines.append(f"        fix: {backend.fix}")
    return lines


def _say_probed(backend: Backend) -> None:
    print(f"  {backend.platform}: {backend.status}", file=sys.stderr)
