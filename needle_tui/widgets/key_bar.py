"""The bottom line: the keys that work here and now."""

from __future__ import annotations

from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen

from needle_tui.widgets.lines import Lines

_ALWAYS = (("F1", "Keys"), ("^p", "Commands"))
_NAMES = {
    "escape": "Esc",
    "enter": "Enter",
    "slash": "/",
    "plus": "+",
    "minus": "-",
    "space": "Space",
    "up": "↑",
    "down": "↓",
}


def key_name(key: str) -> str:
    """A key as people write it: `^s`, `F5`, `Enter`."""
    first = key.split(",")[0]
    if first.startswith("ctrl+"):
        return "^" + first.removeprefix("ctrl+")
    if first.startswith("f") and first[1:].isdigit():
        return first.upper()
    return _NAMES.get(first, first)


class KeyBar(Lines):
    """As many of the screen's keys as fit, whole; the way to all of them is always at the right."""

    DEFAULT_CSS = """
    KeyBar { height: 1; padding: 0 1; background: $panel; color: $muted; }
    """

    def on_mount(self) -> None:
        """Follow the screen's bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._on_bindings)

    def _on_bindings(self, _screen: Screen[object]) -> None:
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """One line."""
        right = _items(_ALWAYS)
        room = width - right.cell_length - 2
        left = Content()
        for key, label in self._shown_keys():
            item = _items(((key, label),))
            if left.cell_length + item.cell_length + 2 > room:
                break
            left = Content.assemble(left, "  " if left else "", item)
        return [Content.assemble(left, " " * (width - left.cell_length - right.cell_length), right)]

    def _shown_keys(self) -> list[tuple[str, str]]:
        seen: set[str] = set()
        keys = []
        for active in self.screen.active_bindings.values():
            binding: Binding = active.binding
            if binding.show and active.enabled and binding.action not in seen:
                seen.add(binding.action)
                keys.append((binding.key_display or key_name(binding.key), binding.description))
        return keys


def _items(pairs: tuple[tuple[str, str], ...]) -> Content:
    parts: list[Content] = []
    for key, label in pairs:
        gap = "  " if parts else ""
        parts.append(Content.assemble(gap, (key, "$accent bold"), " ", (label, "$foreground")))
    return Content("").join(parts)
