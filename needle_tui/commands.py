"""What the command palette offers: the keys of this screen, then where to go, then how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand
from textual.screen import Screen

from needle_tui.theme import THEMES
from needle_tui.widgets.key_bar import key_name
from needle_tui.widgets.top_bar import TABS

if TYPE_CHECKING:
    from needle_tui.app import NeedleApp


def commands_for(app: NeedleApp, screen: Screen[object]) -> Iterable[SystemCommand]:
    """Every command that works here and now."""
    yield from _keys_of(app, screen)
    for name, key, label in TABS:
        yield SystemCommand(f"Go to {label}", f"key {key}", _action(app, f"open_screen('{name}')"))
    yield SystemCommand("Keys", "what every key does here, F1", _action(app, "help"))
    for name, theme in THEMES.items():
        yield SystemCommand(f"Theme: {name}", "colours of the cockpit", partial(_set_theme, app, theme.name))
    yield SystemCommand("Save a picture of this screen", "as an SVG file", _action(app, "screenshot"))
    yield SystemCommand("Quit", "runs go on, q", _action(app, "quit"))


def _keys_of(app: NeedleApp, screen: Screen[object]) -> Iterable[SystemCommand]:
    for active in screen.active_bindings.values():
        binding = active.binding
        if active.node is screen and binding.description and active.enabled:
            run = partial(screen.run_action, binding.action)
            yield SystemCommand(binding.description, f"key {key_name(binding.key)}", run)


def _action(app: NeedleApp, action: str) -> Callable[[], object]:
    return partial(app.run_action, action)


def _set_theme(app: NeedleApp, name: str) -> None:
    app.theme = name
