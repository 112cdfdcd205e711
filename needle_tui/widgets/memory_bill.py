"""What the run needs of one memory, and whether it fits."""

from __future__ import annotations

from textual.content import Content

from needle.runs.record import MemoryBill, MemoryPart
from needle.units import bytes_text
from needle_tui.marks import marks
from needle_tui.text import fit
from needle_tui.widgets.lines import Lines
from needle_tui.widgets.memory_bar import memory_bar


class MemoryPanel(Lines):
    """The bill by its parts, one bar, and the verdict in words."""

    def __init__(self) -> None:
        super().__init__(id="memory", classes="panel")
        self.border_title = "Memory"
        self._bill: MemoryBill | None = None

    def show(self, bill: MemoryBill | None) -> None:
        """A new bill, or None while the data or the base is not known."""
        self._bill = bill
        self.border_title = f"Memory: {bill.where}" if bill else "Memory"
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """Parts, bar, verdict."""
        if self._bill is None:
            return [Content.assemble(("  known once the data and the base are", "$muted"))]
        return [*_parts(self._bill.parts, width), _bar(self._bill, width), _verdict(self._bill, width)]


def _parts(parts: tuple[MemoryPart, ...], width: int) -> list[Content]:
    """The parts side by side, as many on a line as fit."""
    rows: list[Content] = []
    row = Content("  ")
    for part in parts:
        item = Content.assemble((part.name, "$muted"), " ", bytes_text(part.size_bytes))
        if row.cell_length > 2 and row.cell_length + 3 + item.cell_length > width:
            rows.append(row)
            row = Content("  ")
        row = Content.assemble(row, "   " if row.cell_length > 2 else "", item)
    return [*rows, row]


def _bar(bill: MemoryBill, width: int) -> Content:
    if not bill.limit_bytes:
        return Content.assemble(("  how much there is, is not known", "$muted"))
    used = bill.used_by_others_bytes / bill.limit_bytes
    return Content.assemble("  ", memory_bar(max(4, width - 3), used, bill.total_bytes / bill.limit_bytes))


def _verdict(bill: MemoryBill, width: int) -> Content:
    """`✓ fits   1.2 GiB of 31 GiB   (estimate)`; what is short is said in bytes."""
    about = "about " if bill.estimated else ""
    need = f"needs {about}{bytes_text(bill.total_bytes)}"
    if bill.fits is None:
        return Content.assemble(("  ? ", "$warning"), fit(need, width - 4))
    free = bill.limit_bytes - bill.used_by_others_bytes
    have = f"{bytes_text(free)} free of {bytes_text(bill.limit_bytes)}"
    if bill.fits:
        return Content.assemble(
            (f"  {marks().good} fits  ", "$success bold"), (fit(f"{need}, {have}", width - 10), "$foreground")
        )
    short = bytes_text(bill.total_bytes - free)
    text = fit(f"by {short}: {need}, {have}", width - 18)
    return Content.assemble((f"  {marks().bad} does not fit ", "$error bold"), (text, "$error"))
