"""The characters charts and bars are drawn with: braille, blocks or plain ASCII."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

GlyphName = Literal["braille", "block", "ascii"]

_BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
_ASCII_THIRDS = " '-|.:||"
_TERMS_WITHOUT_DOTS = ("linux", "dumb", "vt100", "vt220", "ansi", "cons25")


@dataclass(frozen=True)
class GlyphSet:
    """One way to draw. A cell is `dot_columns` x `dot_rows` dots; `bits[row][column]` is a dot's bit.

    `cells[mask]` is the character that shows the dots of a mask. The other fields are single characters.
    """

    name: GlyphName
    dot_columns: int
    dot_rows: int
    bits: tuple[tuple[int, ...], ...]
    cells: str
    axis: str
    tick: str
    corner: str
    line: str
    line_tick: str
    cursor: str
    mark: str
    bad: str
    hidden: str
    point: str
    cursor_point: str
    cut: str
    levels: str
    bar: str
    bar_rest: str
    bar_left: str
    bar_right: str


BRAILLE = GlyphSet(
    name="braille",
    dot_columns=2,
    dot_rows=4,
    bits=_BRAILLE_BITS,
    cells=" " + "".join(map(chr, range(0x2801, 0x2900))),
    axis="│", tick="┤", corner="└", line="─", line_tick="┴", cursor="│", mark="┊",
    bad="×", hidden="▾", point="●", cursor_point="◆", cut="…", levels="▁▂▃▄▅▆▇█",
    bar="█", bar_rest="░", bar_left="▕", bar_right="▏",
)  # fmt: skip
BLOCK = GlyphSet(
    name="block",
    dot_columns=2,
    dot_rows=2,
    bits=((1, 2), (4, 8)),
    cells=_QUADRANTS,
    axis="│", tick="┤", corner="└", line="─", line_tick="┴", cursor="│", mark="┊",
    bad="×", hidden="▾", point="●", cursor_point="◆", cut="…", levels="▁▂▃▄▅▆▇█",
    bar="█", bar_rest="░", bar_left="▕", bar_right="▏",
)  # fmt: skip
ASCII = GlyphSet(
    name="ascii",
    dot_columns=1,
    dot_rows=3,
    bits=((1,), (2,), (4,)),
    cells=_ASCII_THIRDS,
    axis="|", tick="+", corner="+", line="-", line_tick="+", cursor="|", mark=":",
    bad="x", hidden="v", point="o", cursor_point="*", cut="~", levels="_.-=*#",
    bar="#", bar_rest="-", bar_left="[", bar_right="]",
)  # fmt: skip
GLYPH_SETS: dict[GlyphName, GlyphSet] = {"braille": BRAILLE, "block": BLOCK, "ascii": ASCII}


def glyphs(name: GlyphName | None = None) -> GlyphSet:
    """The glyph set of that name, or the one that suits this process's terminal."""
    return GLYPH_SETS[name or _own_choice()]


def choose_glyphs(environment: Mapping[str, str], encoding: str) -> GlyphName:
    """The glyph set a terminal can show, from its environment and character encoding.

    `NEEDLE_GLYPHS` decides when it names a set; the Linux console's fonts have no braille.
    """
    asked = environment.get("NEEDLE_GLYPHS", "").strip().lower()
    if asked in GLYPH_SETS:
        return asked
    if not encoding.lower().replace("-", "").startswith("utf"):
        return "ascii"
    if environment.get("TERM", "") in _TERMS_WITHOUT_DOTS:
        return "ascii"
    return "braille"


@cache
def _own_choice() -> GlyphName:
    """This process's terminal does not change while it runs."""
    return choose_glyphs(os.environ, locale.getpreferredencoding(False))
