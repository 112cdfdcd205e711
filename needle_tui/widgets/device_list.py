"""The devices this machine has, with their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from needle_tui.marks import marks
from needle_tui.text import column, fit, inert
from needle_tui.widgets.lines import Lines
from needle_tui.widgets.memory_bar import memory_bar, of_text

if TYPE_CHECKING:
    from needle.devices.inventory import Backend, Device, Host, Inventory

_NAME_WIDTH = 8
_AMOUNT_WIDTH = 14


class DeviceList(Lines):
    """One line a device: which the run will use, its kind, and how full its memory is."""

    def __init__(self) -> None:
        super().__init__(id="devices", classes="panel")
        self.border_title = "Devices"
        self._inventory: Inventory | None = None
        self._chosen = ""
        self._probing = False

    def show(self, inventory: Inventory | None, *, chosen_platform: str, probing: bool) -> None:
        """Devices as known now; `probing` while children are still asking."""
        self._inventory, self._chosen, self._probing = inventory, chosen_platform, probing
        self.border_title = "Devices, being probed…" if probing else "Devices"
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """A line for each device, and one for each platform that is hinted at but has none yet."""
        if self._inventory is None:
            return [Content.assemble(("  looking at this machine…", "$muted"))]
        found: list[Content] = []
        for backend in self._inventory.backends:
            found.extend(self._backend_lines(backend, self._inventory.host, width))
        return found or [Content.assemble(("  no device found", "$warning"))]

    def _backend_lines(self, backend: Backend, host: Host, width: int) -> list[Content]:
        chosen = backend.platform == self._chosen
        if backend.platform == "cpu":
            return [_line(chosen, "cpu", f"{host.cores} cores", _host_memory(host), width)]
        if backend.devices:
            return [
                _line(chosen and at == 0, device.id, device.kind, _device_memory(device), width)
                for at, device in enumerate(backend.devices)
            ]
        if backend.status == "absent":
            return []
        style = "$warning" if backend.status == "broken" else "$muted"
        mark = marks().bad if backend.status == "broken" else " "
        text = fit(
            inert(f"{mark} {backend.platform:<{_NAME_WIDTH - 1}} {backend.status}: {backend.reason}"), width
        )
        return [Content.assemble((text, style))]


def _line(chosen: bool, name: str, kind: str, memory: tuple[int, int] | None, width: int) -> Content:
    """`▸ cuda:0  NVIDIA H200  ▕██░░░░▏  61.0 / 139 GiB`."""
    mark = (f"{marks().focus} ", "$accent bold") if chosen else ("  ", "")
    if memory is None:
        kind_width = max(0, width - _NAME_WIDTH - 2)
        return Content.assemble(mark, column(inert(name), _NAME_WIDTH), column(inert(kind), kind_width))
    used, total = memory
    bar_width = 12 if width >= 52 else 6
    kind_width = max(0, width - 2 - _NAME_WIDTH - bar_width - _AMOUNT_WIDTH - 1)
    if len(kind) > kind_width:
        kind = kind.removeprefix("NVIDIA ").removeprefix("AMD ")
    return Content.assemble(
        mark,
        column(inert(name), _NAME_WIDTH),
        column(inert(kind), kind_width) + " ",
        memory_bar(bar_width, used / total if total else 0.0),
        of_text(used, total).rjust(_AMOUNT_WIDTH),
    )


def _host_memory(host: Host) -> tuple[int, int]:
    return host.memory_total_bytes - host.memory_available_bytes, host.memory_total_bytes


def _device_memory(device: Device) -> tuple[int, int] | None:
    return (device.used_bytes or 0, device.total_bytes) if device.total_bytes else None
