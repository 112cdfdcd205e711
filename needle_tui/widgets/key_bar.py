"""The bottom line: the keys that work here and now."""

from __future__ import annotations

from textual.content import Content
from textual.screen import Screen

from needle_tui.widgets.glyphs import glyphs
from needle_tui.widgets.lines import Lines

_ALWAYS = (("F1", "Keys"), ("^p", "Commands"))
_NAMES = {
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "enter": "Enter",
    "slash": "/",
    "plus": "+",
    "minus": "-",
    "space": "Space",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "comma": ",",
    "full_stop": ".",
    "question_mark": "?",
    "equals_sign": "=",
}

_ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→"}


def key_name(key: str) -> str:
    """A key as people write it: `^s`, `F5`, `Enter`."""
    first = key.split(",")[0]
    if first.startswith("ctrl+"):
        return "^" + first.removeprefix("ctrl+")
    if first.startswith("f") and first[1:].isdigit():
        return first.upper()
    return _ARROWS[first] if first in _ARROWS and glyphs().name != "ascii" else _NAMES.get(first, first)


def key_items(pairs: tuple[tuple[str, str], ...]) -> Content:
    """Keys with what they do, on one line."""
    parts: list[Content] = []
    for key, label in pairs:
        gap = "  " if parts else ""
        parts.append(Content.assemble(gap, (key, "$accent bold"), " ", (label, "$foreground")))
    return Content("").join(parts)


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
        right = key_items(_ALWAYS)
        room = width - right.cell_length - 2
        left = Content()
        for key, label in self._shown_keys():
            item = key_items(((key, label),))
            if left.cell_length + item.cell_length + 2 > room:
                break
            left = Content.assemble(left, "  " if left else "", item)
        return [Content.assemble(left, " " * (width - left.cell_length - right.cell_length), right)]

    def _shown_keys(self) -> list[tuple[str, str]]:
        """The screen's own keys, then those of what has the focus; each action once."""
        active = [one for one in self.screen.active_bindings.values() if one.binding.show and one.enabled]
        active.sort(key=lambda one: one.node is not self.screen)
        keys: dict[str, tuple[str, str]] = {}
        for one in active:
            binding = one.binding
            keys.setdefault(
                binding.action, (binding.key_display or key_name(binding.key), binding.description)
            )
        return list(keys.values())
