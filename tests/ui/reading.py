"""Reading what an app shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from textual.pilot import Pilot

from needle_tui.app import NeedleApp

Until = Callable[[Pilot[Any], Callable[[], object], str], Awaitable[None]]
"""Waits for a condition while the app goes on; the text says what was waited for."""


def screen_text(app: NeedleApp) -> str:
    """What the terminal would show, as plain lines."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
