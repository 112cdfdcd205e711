"""Our colours: dark, light, and the person's own sixteen.

Every colour of the first two is an entry of the xterm 256-colour cube or its grey ramp, so that a terminal
without true colour shows the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from textual.theme import Theme

from needle_tui.terminal import has_256_colours

DARK = Theme(
    name="needle-dark",
    primary="#5fafd7",
    secondary="#d7af5f",
    accent="#5fafd7",
    success="#87d787",
    warning="#d7af5f",
    error="#ff5f5f",
    foreground="#d0d0d0",
    background="#121212",
    surface="#1c1c1c",
    panel="#262626",
    variables={
        "muted": "#8a8a8a",
        "rule": "#3a3a3a",
        "text-muted": "#8a8a8a",
        "border": "#5fafd7",
        "border-blurred": "#3a3a3a",
        "block-cursor-background": "#303030",
        "block-cursor-foreground": "#eeeeee",
        "block-cursor-text-style": "none",
        "input-cursor-background": "#d0d0d0",
        "input-cursor-foreground": "#121212",
        "input-selection-background": "#005f87",
        "scrollbar": "#3a3a3a",
        "scrollbar-hover": "#4e4e4e",
        "scrollbar-active": "#5fafd7",
        "scrollbar-background": "#121212",
        "scrollbar-background-hover": "#121212",
        "scrollbar-background-active": "#121212",
    },
)
LIGHT = Theme(
    name="needle-light",
    primary="#005faf",
    secondary="#875f00",
    accent="#005faf",
    success="#005f00",
    warning="#875f00",
    error="#af0000",
    foreground="#262626",
    background="#eeeeee",
    surface="#e4e4e4",
    panel="#dadada",
    dark=False,
    variables={
        "muted": "#6c6c6c",
        "rule": "#bcbcbc",
        "text-muted": "#6c6c6c",
        "border": "#005faf",
        "border-blurred": "#bcbcbc",
        "block-cursor-background": "#d0d0d0",
        "block-cursor-foreground": "#121212",
        "block-cursor-text-style": "none",
        "input-cursor-background": "#262626",
        "input-cursor-foreground": "#eeeeee",
        "input-selection-background": "#afd7ff",
        "scrollbar": "#bcbcbc",
        "scrollbar-hover": "#a8a8a8",
        "scrollbar-active": "#005faf",
        "scrollbar-background": "#eeeeee",
        "scrollbar-background-hover": "#eeeeee",
        "scrollbar-background-active": "#eeeeee",
    },
)
ANSI = Theme(
    name="needle-ansi",
    primary="ansi_cyan",
    secondary="ansi_yellow",
    accent="ansi_cyan",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    ansi=True,
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "screen-selection-background": "ansi_blue",
        "screen-selection-foreground": "ansi_bright_white",
        "muted": "ansi_bright_black",
        "rule": "ansi_bright_black",
        "text-muted": "ansi_bright_black",
        "border": "ansi_cyan",
        "border-blurred": "ansi_bright_black",
        "block-cursor-background": "ansi_blue",
        "block-cursor-foreground": "ansi_bright_white",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_blue",
        "scrollbar": "ansi_bright_black",
        "scrollbar-background": "ansi_default",
    },
)
THEMES = {"dark": DARK, "light": LIGHT, "ansi": ANSI}

FALLBACK_VARIABLES = {"muted": "#8a8a8a", "rule": "#585858"}
"""What our style sheets need and a theme of somebody else's does not define."""


def style_sheet(name: str) -> Path:
    """The file of a screen's style sheet, always spelt the same: another spelling would be read again."""
    return Path(__file__).parent / "styles" / f"{name}.tcss"


def theme_for(environment: Mapping[str, str], asked: str = "") -> Theme:
    """The theme asked for, else the one that suits a terminal, from what it says of itself."""
    asked = asked or environment.get("NEEDLE_THEME", "")
    if asked in THEMES:
        return THEMES[asked]
    if not has_256_colours(environment):
        return ANSI
    return LIGHT if _background_is_light(environment.get("COLORFGBG", "")) else DARK


def _background_is_light(colorfgbg: str) -> bool:
    """`COLORFGBG` is `foreground;background` in ANSI numbers; 7 and 15 are the white ones."""
    return colorfgbg.rsplit(";", 1)[-1] in ("7", "15")
