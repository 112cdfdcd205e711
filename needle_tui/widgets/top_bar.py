"""The top line: which screen this is, which others there are, how many runs are alive, and on which host."""

from __future__ import annotations

from textual import events
from textual.content import Content

from needle_tui.marks import marks
from needle_tui.text import between, inert
from needle_tui.widgets.lines import Lines

TABS = (
    ("launch", "1", "Launch"),
    ("monitor", "2", "Monitor"),
    ("runs", "3", "Runs"),
    ("devices", "4", "Devices"),
)


class TopBar(Lines):
    """Names of the screens with their keys; the current one stands out."""

    DEFAULT_CSS = """
    TopBar { height: 1; padding: 0 1; background: $panel; color: $foreground; }
    """

    def __init__(self, current: str) -> None:
        super().__init__()
        self._current = current
        self._live_runs = 0
        self._host = ""
        self._read_only = False

    def show(self, *, live_runs: int, host: str, read_only: bool) -> None:
        """What changes while the app is open."""
        self._live_runs, self._host, self._read_only = live_runs, inert(host), read_only
        self.update_lines()

    def lines(self, width: int) -> list[Content]:
        """One line; the host yields to the screens' names."""
        left = Content.assemble(("needle", "bold $accent"), "  ", *self._tabs())
        right = Content.assemble(
            ("read-only  " if self._read_only else "", "$warning"), (self._host, "$muted")
        )
        return [between(left, right, width)]

    def _tabs(self) -> list[Content]:
        tabs = []
        for name, key, label in TABS:
            style = "bold reverse" if name == self._current else ""
            alive = f" {marks().live} {self._live_runs} " if self._is_busy(name) else ""
            tabs.append(Content.assemble((f" {key} ", "$muted"), (f" {label} ", style), (alive, "$success")))
        return tabs

    def _is_busy(self, name: str) -> bool:
        return name == "runs" and self._live_runs > 0

    async def on_click(self, event: events.Click) -> None:
        """Switch to the screen whose name was clicked."""
        end = len("needle  ") + self.gutter.left
        for (name, _, _), tab in zip(TABS, self._tabs(), strict=True):
            start, end = end, end + tab.cell_length
            if start <= event.x < end:
                await self.run_action(f"app.open_screen('{name}')")
