"""The inventory a start needs: the remembered one at once, else a fresh look with words while it is taken."""

from __future__ import annotations

from collections.abc import Callable

from needle.devices.inventory import Inventory, cached_inventory, probed_inventory, static_inventory


def inventory_for_start(say: Callable[[str], None]) -> Inventory:
    """Cached when nothing that changes the answer has changed; probed otherwise."""
    cached = cached_inventory()
    if cached is not None:
        return cached
    say("looking at this machine's backends (remembered for next time) …")
    return probed_inventory(static_inventory())
