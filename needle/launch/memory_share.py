"""How much of a device's memory JAX may take when others use the device too. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from needle.devices.records import Device
from needle.units import bytes_text

JAX_SHARE = 0.75
"""What JAX takes of a GPU's whole memory at its start (jax docs, gpu_memory_allocation)."""
_ROOM = 0.9
_LEAST_SHARE = 0.02


@dataclass(frozen=True)
class MemoryShare:
    """A share of the device's whole memory, with its reason."""

    fraction: float
    reason: str


def memory_share(device: Device | None) -> MemoryShare | None:
    """The share to take of a device that others use (row 37); None where JAX's own share is free.

    A tenth of what is free is left for the libraries of CUDA, which take memory beside JAX's pool.
    """
    if device is None or not device.total_bytes or not device.used_bytes:
        return None
    free = max(0, device.total_bytes - device.used_bytes)
    fraction = math.floor(100 * _ROOM * free / device.total_bytes) / 100
    if fraction >= JAX_SHARE or fraction < _LEAST_SHARE:
        return None
    used = f"{bytes_text(device.used_bytes)} of {bytes_text(device.total_bytes)}"
    reason = f"others hold {used} of {device.id}; JAX would take {JAX_SHARE:.0%} of it whatever is free"
    return MemoryShare(fraction, reason)
