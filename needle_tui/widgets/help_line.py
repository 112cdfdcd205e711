"""The line above the keys: help for the focused field, or what just happened."""

from __future__ import annotations

from textual.content import Content

from needle_tui.text import fit, inert
from needle_tui.widgets.lines import Lines


class HelpLine(Lines):
    """One sentence."""

    DEFAULT_CSS = """
    HelpLine { height: 1; padding: 0 1; color: $foreground; }
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = inert(text)
        self._role = "$foreground"

    def show(self, text: str, *, role: str = "$foreground") -> None:
        """Replace the sentence; `role` is a colour of the theme."""
        self.text, self._role = inert(text), role
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """One line."""
        return [Content.assemble((fit(self.text, width), self._role))]
