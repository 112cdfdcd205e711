"""What a pane says when there is nothing in it yet: what to do next."""

from __future__ import annotations

from textual.content import Content

from needle_tui.text import indented, inert, wrapped
from needle_tui.widgets.lines import Lines


class EmptyNote(Lines):
    """A few sentences, the first of them louder."""

    DEFAULT_CSS = """
    EmptyNote { padding: 1 2; }
    """

    def __init__(self, *sentences: str, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sentences = sentences

    def show(self, *sentences: str) -> None:
        """Say something else."""
        self._sentences = sentences
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """Each sentence wrapped, below one another."""
        found: list[Content] = []
        for at, sentence in enumerate(self._sentences):
            found.extend(
                indented(wrapped(inert(sentence), max(8, width)), 0, "bold" if at == 0 else "$muted")
            )
        return found
