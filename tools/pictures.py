"""Terminal pictures that look the same everywhere: no font from elsewhere, braille drawn as dots."""

from __future__ import annotations

import html
import re

FONTS = "'Fira Code', 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ROW_HEIGHT = 24.4
"""The line height of Rich's SVG export."""
_DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_TEXT = re.compile(r"<text([^>]*)>([^<]*)</text>")


def portable_svg(svg: str) -> str:
    """The picture without fonts to be fetched, and with braille as circles: few monospace fonts have it."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;]*;", f"font-family: {FONTS};", svg)
    return _TEXT.sub(lambda match: _with_dots(match[1], match[2]), svg)


def png_of(svg: str) -> bytes:
    """The picture as PNG. Cairo looks for no character in a second font: the first must have all."""
    import cairosvg  # type: ignore[import-untyped]

    one_font = svg.replace(FONTS, "'DejaVu Sans Mono', monospace")
    return bytes(cairosvg.svg2png(bytestring=one_font.encode(), scale=1))


def _with_dots(attributes: str, text: str) -> str:
    """One run of text; its braille characters become blanks with circles over them."""
    characters = html.unescape(text.replace("&#160;", "\u00a0"))
    if not any("\u2800" <= one <= "\u28ff" for one in characters):
        return f"<text{attributes}>{text}</text>"
    x, y, length = (float(_attribute(attributes, name)) for name in ("x", "y", "textLength"))
    cell = length / len(characters)
    dots = [
        dot
        for at, one in enumerate(characters)
        if "\u2800" <= one <= "\u28ff"
        for dot in _dots(one, x + at * cell, y, cell, _attribute(attributes, "class"))
    ]
    rest = re.sub("[\u2800-\u28ff]", "\u00a0", characters)
    return f"<text{attributes}>{html.escape(rest).replace(chr(0xA0), '&#160;')}</text>{''.join(dots)}"


def _dots(character: str, x: float, baseline: float, cell: float, css_class: str) -> list[str]:
    """The circles of one braille character whose cell begins at `x`."""
    mask = ord(character) - 0x2800
    top = baseline - 0.76 * ROW_HEIGHT
    return [
        f'<circle class="{css_class}" cx="{x + (0.27 + 0.46 * column) * cell:.1f}" '
        f'cy="{top + (row + 0.5) * ROW_HEIGHT / 4:.1f}" r="1.8"/>'
        for row, bits in enumerate(_DOT_BITS)
        for column, bit in enumerate(bits)
        if mask & bit
    ]


def _attribute(attributes: str, name: str) -> str:
    found = re.search(rf'{name}="([^"]+)"', attributes)
    return found[1] if found else "0"
