"""A question before something that cannot be taken back."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from needle_tui.text import indented, inert, wrapped
from needle_tui.theme import style_sheet
from needle_tui.widgets.key_bar import key_items
from needle_tui.widgets.lines import Lines


class Question(Lines):
    """The question's words, and under them the keys that answer."""

    def __init__(self, text: str, keys: tuple[tuple[str, str], ...]) -> None:
        super().__init__()
        self._text = text
        self._keys = keys

    def lines(self, width: int) -> list[Content]:
        """Paragraphs, an empty line, the keys."""
        found: list[Content] = []
        for paragraph in self._text.split("\n"):
            found.extend(indented(wrapped(inert(paragraph), width), 0, ""))
        return [*found, Content(), key_items(self._keys)]


class ConfirmDialog(ModalScreen[bool]):
    """Asks; the result is True only for `y`. Enter does not confirm: it is pressed too easily."""

    CSS_PATH = style_sheet("dialog")
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q,enter", "answer(False)", "No"),
    ]

    def __init__(self, title: str, text: str, *, yes: str, no: str = "Leave it") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._keys = (("y", yes), ("Esc", no))

    def compose(self) -> ComposeResult:
        """One framed question."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(inert(self._title))
            yield Question(self._text, self._keys)

    def action_answer(self, answer: bool) -> None:
        """Close with the answer."""
        self.dismiss(answer)
