"""How each phase of a run looks: the one table of words, glyphs and colours."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from needle_tui.widgets.glyphs import glyphs


@dataclass(frozen=True)
class PhaseLook:
    """A phase as shown: never by colour alone. `role` names a colour of the theme."""

    word: str
    glyph: str
    ascii: str
    role: str


LOOKS: dict[str, PhaseLook] = {
    "queued": PhaseLook("queued", "○", ".", "muted"),
    "starting": PhaseLook("starting", "◔", "o", "accent"),
    "compiling": PhaseLook("compiling", "◑", "O", "accent"),
    "running": PhaseLook("running", "●", "*", "success"),
    "scoring": PhaseLook("scoring", "◕", "%", "accent"),
    "stalled": PhaseLook("stalled", "◌", "~", "warning"),
    "stopping": PhaseLook("stopping", "◼", "#", "muted"),
    "stopped": PhaseLook("stopped", "◼", "#", "muted"),
    "finished": PhaseLook("finished", "✓", "+", "success"),
    "failed": PhaseLook("failed", "✗", "x", "error"),
    "killed": PhaseLook("killed", "✗", "x", "error"),
    "lost": PhaseLook("lost", "?", "?", "error"),
}
WORD_WIDTH = max(len(look.word) for look in LOOKS.values())


def look_of(phase: str, *, stalled: bool = False) -> PhaseLook:
    """The look of a phase; an unknown one is shown by its own name rather than hidden."""
    if stalled and phase == "running":
        return LOOKS["stalled"]
    return LOOKS.get(phase, PhaseLook(phase, "?", "?", "warning"))


def phase_text(look: PhaseLook) -> Content:
    """Glyph and word in the phase's colour."""
    glyph = look.ascii if glyphs().name == "ascii" else look.glyph
    return Content.assemble((f"{glyph} {look.word}", f"${look.role} bold"))
