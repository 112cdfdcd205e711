"""Which devices of a platform a run uses, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from needle.devices.inventory import Backend, Device
from needle.devices.visible import JAX_FILTERS, VISIBLE
from needle.errors import InputError
from needle.runs.record import Decision

CHOOSABLE = ("cuda", "rocm")
"""Platforms whose devices can be shown to a process one by one."""
_ONE_SO_FAR = "training computes on one device so far"


@dataclass(frozen=True)
class DeviceChoice:
    """The devices of a run; the first computes. `visible` are those to be shown to it, none for all.

    An element of `visible` is an inventory's id (`cuda:1`) or a UUID.
    """

    decision: Decision
    devices: tuple[Device, ...] = ()
    visible: tuple[str, ...] = ()


def choose_devices(
    requested: str, platform: str, backend: Backend | None, inherited: Mapping[str, str]
) -> DeviceChoice:
    """The devices for `requested`, such as `0,1`, `cuda:1`, `GPU-8f3a`; empty for the first.

    Raises InputError at the field `devices` for one that this machine does not have or does not show.
    """
    known = backend.devices if backend else ()
    wanted = [part.strip() for part in requested.split(",") if part.strip()]
    if not wanted:
        return _first(platform, known, inherited)
    hidden = backend.hidden if backend else ()
    if platform not in CHOOSABLE:
        return _all_or_none(wanted, platform, known)
    if not known and not hidden:
        ids = tuple(dict.fromkeys(f"{platform}:{part}" if part.isdigit() else part for part in wanted))
        return DeviceChoice(Decision(", ".join(ids), "asked for; not seen yet, so the run checks"), (), ids)
    found = dict.fromkeys(_device(part, platform, known, hidden, inherited) for part in wanted)
    devices = tuple(found)
    visible = tuple(_address(one, known) for one in devices)
    decision = Decision(_names(devices), _asked_reason(devices), _rejected(known, devices, "not asked for"))
    return DeviceChoice(decision, devices, visible)


def devices_text(devices: Sequence[Device]) -> str:
    """`cuda:0 NVIDIA H200, cuda:1 NVIDIA T4`."""
    return ", ".join(f"{device.id} {device.kind}" for device in devices) or "none"


def _first(platform: str, known: tuple[Device, ...], inherited: Mapping[str, str]) -> DeviceChoice:
    if not known:
        return DeviceChoice(Decision("the first", "its devices are not known yet"))
    first = known[0]
    if len(known) == 1 or platform not in CHOOSABLE or any(inherited.get(name) for name in JAX_FILTERS):
        reason = "the only one" if len(known) == 1 else f"the first of {len(known)}; {_ONE_SO_FAR}"
        return DeviceChoice(Decision(first.id, reason, _rejected(known, (first,), _ONE_SO_FAR)), known[:1])
    reason = f"the first of {len(known)}; {_ONE_SO_FAR}, and JAX would take memory on all it sees"
    decision = Decision(first.id, reason, _rejected(known, (first,), _ONE_SO_FAR))
    return DeviceChoice(decision, known[:1], (first.id,))


def _all_or_none(wanted: list[str], platform: str, known: tuple[Device, ...]) -> DeviceChoice:
    """Where devices cannot be hidden from a process, only all of them can be asked for."""
    ids = {f"{platform}:{part}" if part.isdigit() else part for part in wanted}
    there = {device.id for device in known} or {f"{platform}:0"}
    if not ids <= there:
        raise InputError(
            f"{platform} has no {', '.join(sorted(ids - there))}",
            remedy=f"there is {devices_text(known)}",
            field="devices",
        )
    if ids != there:
        raise InputError(
            f"devices of {platform} cannot be chosen one by one", remedy="leave it empty", field="devices"
        )
    return DeviceChoice(Decision(", ".join(sorted(ids)), _asked_reason(known)), known)


def _device(
    text: str,
    platform: str,
    known: tuple[Device, ...],
    hidden: tuple[Device, ...],
    inherited: Mapping[str, str],
) -> Device:
    """The device that a number, an id, a UUID or its beginning means."""
    name = f"{platform}:{text}" if text.isdigit() else text
    for device in (*known, *hidden):
        if device.id == name or _has_uuid(device, text):
            if device in hidden:
                _refuse_hidden(device, inherited)
            return device
    remedy = f"there are: {devices_text(known)}"
    if hidden:
        remedy += f"; hidden: {devices_text(hidden)}"
    raise InputError(f"this machine has no device {text} for {platform}", remedy=remedy, field="devices")


def _address(device: Device, known: tuple[Device, ...]) -> str:
    """Slices and what JAX does not number go by their UUID: a number would mean a whole GPU."""
    return device.id if device in known and not device.uuid.startswith("MIG-") else device.uuid


def _has_uuid(device: Device, text: str) -> bool:
    return text.startswith(("GPU-", "MIG-")) and device.uuid.startswith(text)


def _refuse_hidden(device: Device, inherited: Mapping[str, str]) -> None:
    """CUDA itself shows one MIG slice only, and any can be asked for; what a person hid stays hidden."""
    if device.uuid and VISIBLE not in inherited:
        return
    raise InputError(
        f"{device.id} is hidden by {VISIBLE}={inherited.get(VISIBLE, '')}",
        remedy=f"unset {VISIBLE}, or add it there",
        field="devices",
    )


def _names(devices: Sequence[Device]) -> str:
    return ", ".join(device.id for device in devices)


def _asked_reason(devices: Sequence[Device]) -> str:
    if len(devices) <= 1:
        return "asked for"
    return f"asked for; {_ONE_SO_FAR}: {devices[0].id}; on the others JAX only takes memory"


def _rejected(known: tuple[Device, ...], chosen: Sequence[Device], why: str) -> dict[str, str]:
    return {device.id: why for device in known if device not in chosen}
