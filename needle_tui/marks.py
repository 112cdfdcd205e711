"""Single characters that say something beside a word, with their plain ASCII stand-ins."""

from __future__ import annotations

from typing import NamedTuple

from needle_tui.widgets.glyphs import glyphs


class Marks(NamedTuple):
    """One set of marks; each is one cell wide."""

    good: str
    bad: str
    focus: str
    chosen: str
    unchosen: str
    before: str
    after: str
    live: str
    done: str
    rest: str
    own: str


UNICODE = Marks("✓", "✗", "▸", "●", "○", "‹", "›", "●", "━", "─", "▒")
ASCII = Marks("+", "x", ">", "*", "o", "<", ">", "*", "=", "-", "=")


def marks() -> Marks:
    """The marks that this terminal can show."""
    return ASCII if glyphs().name == "ascii" else UNICODE
