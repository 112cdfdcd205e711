"""Jumping: a letter on every part of the screen that takes keys; pressing it goes there."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Static

from needle_tui.theme import style_sheet

LETTERS = "asdfghjklqwertyuiopzxcvbnm"
assert sorted(LETTERS) == list(ascii_lowercase)


class JumpScreen(ModalScreen[Widget]):
    """Letters over the screen below; the result is the widget that was chosen, none for any other key."""

    CSS_PATH = style_sheet("dialog")
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close")]

    def __init__(self, targets: Sequence[tuple[Widget, Region]]) -> None:
        super().__init__()
        self.targets = dict(zip(LETTERS, targets, strict=False))

    def compose(self) -> ComposeResult:
        """One letter at the upper left of each part."""
        for letter, (_, region) in self.targets.items():
            label = Static(Content(f" {letter} "), classes="jump-letter")
            label.absolute_offset = region.offset
            yield label

    def on_key(self, event: events.Key) -> None:
        """A letter goes to its part; any other key goes nowhere."""
        event.stop()
        widget, _ = self.targets.get(event.key, (None, None))
        self.dismiss(widget)


def targets_on(screen: Screen[object]) -> list[tuple[Widget, Region]]:
    """What takes keys and is in sight, in reading order, each with the part of it that is seen."""
    found = []
    for widget in screen.focus_chain:
        seen = widget.region.intersection(screen.region)
        for ancestor in widget.ancestors:
            if isinstance(ancestor, Widget):
                seen = seen.intersection(ancestor.region)
        if seen:
            found.append((widget, seen))
    return sorted(found, key=lambda one: (one[1].y, one[1].x))
