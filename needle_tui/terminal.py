"""What a terminal says of itself, before Textual is loaded."""

from __future__ import annotations

from collections.abc import Mapping


def has_256_colours(environment: Mapping[str, str]) -> bool:
    """Whether the terminal shows at least the xterm 256-colour cube."""
    term = environment.get("TERM", "")
    return (
        environment.get("COLORTERM", "") in ("truecolor", "24bit") or "256color" in term or "direct" in term
    )
