"""Text from outside made safe to show, and cut to a width without being torn."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from needle_tui.widgets.glyphs import glyphs

_DIRECTION_AND_ZERO_WIDTH = (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_INERT: dict[int, str] = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *_DIRECTION_AND_ZERO_WIDTH), "·"),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **dict.fromkeys(map(ord, "\n\r\t"), " "),
}


def inert(text: str) -> str:
    """`text` on one line with nothing left in it that a terminal would act on."""
    return text.translate(_INERT)


def fit(text: str, width: int) -> str:
    """`text` cut to `width` cells, the cut marked by `…`."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)) + glyphs().cut if width > 0 else ""


def column(text: str, width: int, *, right: bool = False) -> str:
    """`text` in exactly `width` cells: cut or padded."""
    cut = fit(text, width)
    padding = " " * (width - cell_len(cut))
    return padding + cut if right else cut + padding


def wrapped(text: str, width: int) -> list[str]:
    """`text` broken at spaces into lines of at most `width` cells; a longer word is broken anywhere."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        pieces = _pieces(word, width)
        lines.extend(pieces[:-1])
        line = pieces[-1]
    return [*lines, line] if line or not lines else lines


def between(left: Content, right: Content, width: int) -> Content:
    """`left` and `right` at the two ends of one line; the right one yields where both do not fit."""
    space = width - left.cell_length - right.cell_length
    if space < 1:
        return left.truncate(width, ellipsis=True)
    return Content.assemble(left, " " * space, right)


def indented(lines: Iterable[str], indent: int, style: str) -> list[Content]:
    """Each line in one style after `indent` spaces."""
    return [Content.assemble(" " * indent, (line, style)) for line in lines]


def _pieces(word: str, width: int) -> list[str]:
    """A word cut into pieces that each fit."""
    pieces = []
    while cell_len(word) > max(1, width):
        head = set_cell_size(word, max(1, width)).rstrip() or word[:1]
        pieces.append(head)
        word = word[len(head) :]
    return [*pieces, word]
