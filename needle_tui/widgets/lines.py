"""The base of every pane that is lines of text computed for its width."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Region, Size
from textual.widget import Widget


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
        changed = [y for y, line in enumerate(fresh) if not line.is_same(self._shown[y])]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def render(self) -> Content:
        """The lines as one text."""
        self._shown = self.lines(self.content_size.width)
        return Content("\n").join(self._shown)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are lines."""
        return len(self.lines(width)) if width else 0
