"""A bar that says how full a memory is: what others use, what this run takes, what stays free."""

from __future__ import annotations

from textual.content import Content


def memory_bar(width: int, used: float, added: float = 0.0) -> Content:
    """`▕████▓▓░░░░▏` in `width` cells; `used` and `added` are shares of the whole.

    What is added but has no room is cut at the bar's end: words beside the bar say by how much.
    """
    inner = max(0, width - 2)
    used_cells = min(inner, _cells(used, inner))
    added_cells = min(inner - used_cells, _cells(used + added, inner) - used_cells)
    free_cells = inner - used_cells - added_cells
    role = "$error" if used + added > 1 else "$accent"
    return Content.assemble(
        ("▕", "$rule"),
        ("█" * used_cells, "$muted"),
        ("█" * added_cells, role),
        ("░" * free_cells, "$rule"),
        ("▏", "$rule"),
    )


def _cells(share: float, inner: int) -> int:
    """Cells for a share of the bar; anything above nothing shows at least one."""
    return max(1, round(share * inner)) if share > 0 else 0
