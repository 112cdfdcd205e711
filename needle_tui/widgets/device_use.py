"""What the run's devices are doing: memory, load, temperature and power, as sampled by its supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from needle.runs.record import DeviceSample, SystemSample
from needle.units import bytes_text
from needle_tui.text import column, fit, inert
from needle_tui.widgets.memory_bar import memory_bar, of_text
from needle_tui.widgets.moment_lines import MomentLines

if TYPE_CHECKING:
    pass

_NAME = 9


class DeviceUse(MomentLines):
    """A line for each device, one for host memory, one for the trainer itself."""

    def __init__(self) -> None:
        super().__init__(id="device-use", title="Device", classes="panel")

    def lines(self, width: int) -> list[Content]:
        """Devices first, then host and process."""
        moment = self.moment
        if moment is None or moment.sample is None:
            return [Content.assemble(("  no sample yet", "$muted"))]
        sample = moment.sample
        found = [line for device in sample.devices for line in _device_lines(device, width)]
        found.append(_memory_line("host", sample.host_used_bytes, sample.host_total_bytes, width))
        found.append(_process_line(sample, width))
        in_use, peak = moment.last.get("device_bytes_in_use"), moment.last.get("device_peak_bytes")
        if in_use is not None and peak is not None:
            text = f"{bytes_text(in_use)}, peak {bytes_text(peak)}"
            found.append(
                Content.assemble(("  " + "arrays".ljust(_NAME), "$muted"), fit(text, width - 2 - _NAME))
            )
        return found


def _device_lines(device: DeviceSample, width: int) -> list[Content]:
    name = inert(device.id)
    found = []
    if device.used_bytes is not None and device.total_bytes:
        found.append(_memory_line(name, device.used_bytes, device.total_bytes, width))
    readings = [
        f"{device.utilisation_percent:3.0f} %" if device.utilisation_percent is not None else "",
        f"{device.temperature_c:.0f} °C" if device.temperature_c is not None else "",
        f"{device.power_w:.0f} W" if device.power_w is not None else "",
    ]
    words = "  ".join(reading for reading in readings if reading)
    if words:
        head = "" if found else name
        found.append(Content.assemble(("  " + column(head, _NAME), "$muted"), fit(words, width - 2 - _NAME)))
    return found


def _memory_line(name: str, used: int, total: int, width: int) -> Content:
    amount = of_text(used, total).rjust(14)
    bar = memory_bar(max(0, width - 2 - _NAME - 15), used / total if total else 0.0)
    return Content.assemble(("  " + column(name, _NAME), "$muted"), bar, " ", amount)


def _process_line(sample: SystemSample, width: int) -> Content:
    words = f"{bytes_text(sample.process_bytes)}, {sample.process_cpu_percent:.0f} % cpu"
    return Content.assemble(("  " + column("trainer", _NAME), "$muted"), fit(words, width - 2 - _NAME))
