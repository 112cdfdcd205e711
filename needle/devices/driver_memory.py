"""What the NVIDIA driver adds to a backend: whole memory, who uses it, and devices JAX does not see. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from needle.devices.nvml import DeviceUse
from needle.devices.records import Backend, Device


def with_driver_memory(backend: Backend, samples: Sequence[DeviceUse]) -> Backend:
    """CUDA devices as the driver sees them: JAX tells only what its own process may take.

    Where JAX named no devices, because it is not installed or was not asked, the driver's are listed.
    """
    if backend.platform != "cuda" or not samples:
        return backend
    by_id = {sample.id: sample for sample in samples}
    visible = [sample for sample in samples if sample.id.startswith("cuda:")]
    known = backend.devices or tuple(_device(sample) for sample in visible)
    devices = tuple(
        _filled(device, by_id[device.id]) if device.id in by_id else device
        for device in sorted(known, key=lambda device: device.index)
    )
    hidden = tuple(_device(sample) for sample in samples if not sample.id.startswith("cuda:"))
    return replace(backend, devices=devices, hidden=hidden)


def _filled(device: Device, sample: DeviceUse) -> Device:
    return replace(
        device,
        kind=device.kind or sample.name,
        total_bytes=sample.total_bytes,
        used_bytes=sample.used_bytes,
        uuid=sample.uuid,
        processes=sample.processes,
    )


def _device(sample: DeviceUse) -> Device:
    index = int(sample.id.rpartition(":")[2]) if ":" in sample.id else int(sample.id.rpartition(" ")[2])
    return _filled(Device(sample.id, "cuda", sample.name, index), sample)
