"""Where the data set lives, and why."""

from __future__ import annotations

from needle.devices.inventory import Device
from needle.errors import InputError
from needle.runs.record import Decision
from needle.units import bytes_text

DEVICE_SHARE = 0.25
"""Largest share of a device's memory that `auto` gives to the data set (field notes, row 33)."""


def choose_placement(requested: str, dataset_bytes: int, device: Device | None) -> Decision:
    """Device or host for a data set of this size. Raises InputError when an explicit choice cannot work."""
    size = bytes_text(dataset_bytes)
    if device is None or device.platform == "cpu":
        return _on_cpu(requested, size)
    free_bytes = _free_bytes(device)
    room = f"{bytes_text(free_bytes)} free on {device.id}" if free_bytes is not None else f"{device.id}"
    fits = free_bytes is None or dataset_bytes <= free_bytes
    if requested == "device" and not fits:
        raise InputError(
            f"the data set needs {size} but there is {room}",
            remedy="choose host: batches cross to the device as they are needed",
            field="placement",
        )
    if requested == "device":
        return Decision("device", f"{size} asked for on the device; {room}", {"host": "not asked for"})
    if requested == "host":
        return Decision("host", f"{size} asked for in host memory, two batches ahead of the step", {})
    if free_bytes is not None and dataset_bytes <= free_bytes * DEVICE_SHARE:
        return Decision("device", f"{size} is small beside {room}: no transfer in the step", {})
    why_not = f"{size} is over a quarter of {room}" if free_bytes is not None else "device memory is unknown"
    return Decision("host", "batches cross two ahead of the step", {"device": why_not})


def _on_cpu(requested: str, size: str) -> Decision:
    """On a CPU both are host memory; `device` still saves the copy of each batch."""
    if requested == "host":
        return Decision("host", f"{size} asked for as arrays outside JAX; batches are copied two ahead", {})
    if requested == "device":
        return Decision("device", f"{size} asked for in JAX's memory, which on a CPU is host memory", {})
    return Decision(
        "device", f"{size}; on a CPU device memory is host memory, so nothing is copied in the step", {}
    )


def _free_bytes(device: Device) -> int | None:
    if device.total_bytes is None:
        return None
    return max(0, device.total_bytes - (device.used_bytes or 0))
