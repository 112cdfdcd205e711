"""Reading what an app shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from needle_tui.app import NeedleApp

Until = Callable[..., Awaitable[None]]
"""`until(pilot, condition, what, within_s=20)` waits for a condition while the app goes on."""


def screen_text(app: NeedleApp) -> str:
    """What the terminal would show, as plain lines."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
