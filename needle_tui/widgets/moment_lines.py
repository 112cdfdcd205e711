"""The base of every pane of Monitor that is computed from a run's latest moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from needle_tui.widgets.lines import Lines

if TYPE_CHECKING:
    from needle_tui.moment import Moment


class MomentLines(Lines):
    """Lines of text from `self.moment`, which is None while no run is open."""

    def __init__(self, *, id: str, title: str = "", classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        if title:
            self.border_title = title
        self.moment: Moment | None = None

    def show(self, moment: Moment | None) -> None:
        """A newer moment, or None when no run is open."""
        self.moment = moment
        self.update_lines()
