"""The four screens by name, each imported when it is first opened: the first paint waits for one only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

if TYPE_CHECKING:
    from needle.config import Value
    from needle_tui.app import NeedleApp

NAMES = ("launch", "monitor", "runs", "devices")


def make_screen(name: str, app: NeedleApp) -> Screen[None]:
    """A new screen of that name."""
    if name == "launch":
        from needle_tui.screens.launch import LaunchScreen

        return LaunchScreen(_sample_values())
    if name == "monitor":
        from needle_tui.screens.monitor import MonitorScreen

        return MonitorScreen(app.open_directory)
    if name == "runs":
        from needle_tui.screens.runs import RunsScreen

        return RunsScreen()
    from needle_tui.screens.devices import DevicesScreen

    return DevicesScreen()


def _sample_values() -> dict[str, Value]:
    """The form opens on what comes with the package, ready to start."""
    from needle.config import to_json
    from needle.launch.sample import sample_settings

    return to_json(sample_settings())
