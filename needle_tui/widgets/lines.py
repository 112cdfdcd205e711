"""The base of every pane that is lines of text computed for its width."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Region, Size
from textual.widget import Widget

NEAR_CELLS = 6
"""Moving the terminal's cursor costs more than sending a few cells again."""


class Lines(Widget):
    """Lines of text, recomputed for the width there is; only the lines that changed are sent again."""

    DEFAULT_CSS = """
    Lines { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._shown: list[Content] = []

    def lines(self, width: int) -> list[Content]:
        """The lines for this width, each of at most `width` cells."""
        raise NotImplementedError

    def update_lines(self) -> None:
        """Compute the lines again and repaint what differs; call it after the facts behind them changed."""
        if not self.is_mounted:
            return
        width = self.content_size.width
        fresh = self.lines(width) if width else []
        if len(fresh) != len(self._shown):
            self.refresh(layout=True)
            return
        regions = [
            Region(x, y, length, 1)
            for y, (before, after) in enumerate(zip(self._shown, fresh, strict=True))
            for x, length in changed_runs(before, after, width)
        ]
        if regions:
            self.refresh(*regions)

    def render(self) -> Content:
        """The lines as one text."""
        self._shown = self.lines(self.content_size.width)
        return Content("\n").join(self._shown)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are lines."""
        return len(self.lines(width)) if width else 0


def changed_runs(before: Content, after: Content, width: int) -> list[tuple[int, int]]:
    """Where two versions of a line differ: (first cell, number of cells). Near ones are joined."""
    if before.is_same(after):
        return []
    if before.cell_length != len(before.plain) or after.cell_length != len(after.plain):
        return [(0, width)]  # a character of two cells: the line is taken whole, lest one is cut in half
    old, new = _styled_cells(before, width), _styled_cells(after, width)
    runs: list[tuple[int, int]] = []
    for x in range(width):
        if old[x] == new[x]:
            continue
        if runs and x - sum(runs[-1]) <= NEAR_CELLS:
            runs[-1] = (runs[-1][0], x + 1 - runs[-1][0])
        else:
            runs.append((x, 1))
    return runs


def _styled_cells(line: Content, width: int) -> list[tuple[str, str]]:
    """Each cell's character and style."""
    styles = [""] * max(width, len(line.plain))
    for start, end, style in line.spans:
        styles[start:end] = [f"{one} {style}" for one in styles[start:end]]
    return list(zip(line.plain.ljust(width), styles, strict=False))[:width]
