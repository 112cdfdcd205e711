"""What every screen has: the top bar, the keys, and classes that say how much room there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from needle_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from needle_tui.app import NeedleApp


class NeedleScreen(Screen[None]):
    """A screen of the cockpit. `-narrow` is one column; `-short` leaves out what can be left out."""

    AUTO_FOCUS = ""
    paints_in_steps = False
    """Whether the screen itself says when it is painted and background work may begin."""

    @property
    def cockpit(self) -> NeedleApp:
        """The app, by its own type."""
        return cast("NeedleApp", self.app)

    @property
    def is_dense(self) -> bool:
        """Whether reasons must share a line with what they explain."""
        return self.app.size.height < 30

    def on_screen_resume(self) -> None:
        """Bring the top bar up to date with what happened on other screens."""
        self.refresh_top_bar()
        if not self.paints_in_steps:
            self.call_after_refresh(self.cockpit.begin_background_work)

    def refresh_top_bar(self) -> None:
        """Show what the app knows now."""
        app = self.cockpit
        for bar in self.query(TopBar):
            bar.show(live_runs=app.live_runs, host=app.host_name, read_only=app.context.read_only)
