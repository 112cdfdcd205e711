"""What every screen has: the top bar, the keys, and classes that say how much room there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from needle_tui.widgets.glyphs import glyphs
from needle_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from needle_tui.app import NeedleApp


class NeedleScreen(Screen[None]):
    """A screen of the cockpit. `-narrow` is one column; `-short` leaves out what can be left out."""

    AUTO_FOCUS = ""

    @property
    def cockpit(self) -> NeedleApp:
        """The app, by its own type."""
        return cast("NeedleApp", self.app)

    @property
    def is_dense(self) -> bool:
        """Whether reasons must share a line with what they explain."""
        return self.app.size.height < 30

    async def furnish(self) -> None:
        """Make what the first paint did not wait for; called each time the screen is opened."""

    def on_mount(self) -> None:
        """Frames of plain characters where the terminal has no others."""
        self.set_class(glyphs().name == "ascii", "-ascii")

    def on_screen_resume(self) -> None:
        """Bring the top bar up to date with what happened on other screens."""
        self.refresh_top_bar()

    def refresh_top_bar(self) -> None:
        """Show what the app knows now."""
        app = self.cockpit
        for bar in self.query(TopBar):
            bar.show(live_runs=app.live_runs, host=app.host_name, read_only=app.context.read_only)
