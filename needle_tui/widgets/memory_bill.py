"""What the run needs of one memory, and whether it fits."""

from __future__ import annotations

from textual.content import Content

from needle.runs.record import MemoryBill, MemoryPart
from needle.units import bytes_text
from needle_tui.marks import marks
from needle_tui.remedies import Remedy
from needle_tui.text import fit, inert
from needle_tui.widgets.lines import Lines
from needle_tui.widgets.memory_bar import memory_bar


class MemoryPanel(Lines):
    """The bill by its parts, one bar, and the verdict in words."""

    def __init__(self) -> None:
        super().__init__(id="memory", classes="panel")
        self.border_title = "Memory"
        self._bill: MemoryBill | None = None
        self._dense = False
        self._remedies: tuple[Remedy, ...] = ()

    def show(
        self, bill: MemoryBill | None, *, dense: bool = False, remedies: tuple[Remedy, ...] = ()
    ) -> None:
        """A new bill, or None while the data or the base is not known. `dense` leaves the parts out."""
        self._bill, self._dense, self._remedies = bill, dense, remedies
        self.border_title = Content(inert(f"Memory: {bill.where}" if bill else "Memory"))
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """Parts, bar, verdict."""
        if self._bill is None:
            return [Content.assemble(("  known once the data and the base are", "$muted"))]
        parts = [] if self._dense else _parts(self._bill.parts, width)
        ways = [_way(remedy, width, first=at == 0) for at, remedy in enumerate(self._remedies)]
        return [*parts, _bar(self._bill, width), _verdict(self._bill, width), *ways]


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


def _way(remedy: Remedy, width: int, *, first: bool) -> Content:
    """`F7 batch size 4: about 61 MiB, fits`; the key applies the first one."""
    key = ("F7", "$accent bold") if first else ("or", "$muted")
    words = (
        f"{remedy.field.replace('_', ' ')} {remedy.value}: about {bytes_text(remedy.bill.total_bytes)}, fits"
    )
    return Content.assemble("  ", key, " ", fit(words, width - 5))


def _verdict(bill: MemoryBill, width: int) -> Content:
    """`✓ fits  about 1.2 GiB of 31 GiB free`; what is short is said in bytes."""
    need = ("about " if bill.estimated else "") + bytes_text(bill.total_bytes)
    if bill.fits is None:
        return Content.assemble((f"  {marks().unchosen} ", "$warning"), fit(f"needs {need}", width - 4))
    free = max(0, bill.limit_bytes - bill.used_by_others_bytes)
    have = f"{need} of {bytes_text(free)}"
    phrasings = (f"{have} free, {bytes_text(bill.limit_bytes)} in all", f"{have} free", have)
    if bill.fits:
        words = next((one for one in phrasings if len(one) <= width - 10), have)
        return Content.assemble((f"  {marks().good} fits  ", "$success bold"), fit(words, width - 10))
    short = f"{bytes_text(bill.total_bytes - free)} short"
    words = next((f"{short}: {one}" for one in phrasings if len(one) + len(short) + 2 <= width - 18), short)
    return Content.assemble(
        (f"  {marks().bad} does not fit  ", "$error bold"), (fit(words, width - 18), "$error")
    )
