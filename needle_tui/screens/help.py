"""Help: the keys that work on the screen it was opened from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen

from needle_tui.text import column
from needle_tui.theme import style_sheet
from needle_tui.widgets.key_bar import key_name
from needle_tui.widgets.lines import Lines

_KEY_WIDTH = 12
_LEFT_OUT = ("screen.copy_text", "help_quit")


class KeyList(Lines):
    """One line a key."""

    def __init__(self, groups: Mapping[str, list[tuple[str, str]]]) -> None:
        super().__init__()
        self._groups = groups

    def lines(self, width: int) -> list[Content]:
        """Groups under their names."""
        found: list[Content] = []
        for title, keys in self._groups.items():
            found.append(Content.assemble((title, "$accent bold")))
            for key, words in keys:
                found.append(Content.assemble(("  " + column(key, _KEY_WIDTH), "bold"), words))
            found.append(Content())
        return found[:-1]


class HelpScreen(ModalScreen[None]):
    """A sheet of keys over the screen it belongs to."""

    CSS_PATH = style_sheet("dialog")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f1,enter", "dismiss", "Close")]

    def __init__(self, bindings: Mapping[str, ActiveBinding]) -> None:
        super().__init__()
        self._groups = grouped_keys(bindings)

    def compose(self) -> ComposeResult:
        """The sheet."""
        with VerticalScroll(classes="dialog") as dialog:
            dialog.border_title = "Keys"
            dialog.border_subtitle = "Esc closes"
            yield KeyList(self._groups)


def grouped_keys(bindings: Mapping[str, ActiveBinding]) -> dict[str, list[tuple[str, str]]]:
    """Keys by where they act: this screen and what has the focus first, then those that work everywhere."""
    here: dict[str, list[str]] = {}
    everywhere: dict[str, list[str]] = {}
    for active in sorted(bindings.values(), key=lambda one: not isinstance(one.node, Screen)):
        binding = active.binding
        if not binding.description or binding.action in _LEFT_OUT or _edits_text(active):
            continue
        is_general = active.node is active.node.app or binding.action.startswith("app.focus")
        group = everywhere if is_general else here
        group.setdefault(binding.description, []).append(key_name(binding.key))
    return {
        title: [(" ".join(dict.fromkeys(keys)), words) for words, keys in group.items()]
        for title, group in (("Here", here), ("Everywhere", everywhere))
        if group
    }


def _edits_text(active: ActiveBinding) -> bool:
    """Whether the key is one of a text box or of scrolling, which are those of every terminal program."""
    return type(active.node).__name__ in ("ValueInput", "VerticalScroll")
