"""A bar that says how full a memory is: what is used, what a run would add, what stays free."""

from __future__ import annotations

from textual.content import Content

from needle.units import bytes_text
from needle_tui.marks import marks
from needle_tui.widgets.glyphs import glyphs


def memory_bar(width: int, used: float, added: float = 0.0) -> Content:
    """`▕████▒▒░░░░▏` in `width` cells; `used` and `added` are shares of the whole.

    What is added but has no room is cut at the bar's end: words beside the bar say by how much.
    """
    if width < 4:
        return Content()
    shapes, inner = glyphs(), width - 2
    used_cells = min(inner, _cells(used, inner))
    added_cells = min(inner - used_cells, _cells(added, inner))
    free_cells = inner - used_cells - added_cells
    return Content.assemble(
        (shapes.bar_left, "$rule"),
        (shapes.bar * used_cells, "$muted" if added else "$accent"),
        (marks().own * added_cells, "$error" if used + added > 1 else "$accent"),
        (shapes.bar_rest * free_cells, "$rule"),
        (shapes.bar_right, "$rule"),
    )


def of_text(used_bytes: int, total_bytes: int) -> str:
    """`61.0/139 GiB`: both in the unit of the whole."""
    amount, _, unit = bytes_text(total_bytes).partition(" ")
    used = used_bytes / 1024 ** ("B", "KiB", "MiB", "GiB", "TiB").index(unit)
    return f"{used:.0f}/{amount} {unit}" if used >= 100 else f"{used:.1f}/{amount} {unit}"


def _cells(share: float, inner: int) -> int:
    """Cells for a share of the bar; anything above nothing shows at least one."""
    return max(1, round(share * inner)) if share > 0 else 0
