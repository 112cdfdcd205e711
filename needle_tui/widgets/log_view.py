"""The end of a run's log: follows it, stops following when scrolled back, and searches what it holds."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from needle_tui.widgets import log_rows
from needle_tui.widgets.chart_picture import Picture
from needle_tui.widgets.glyphs import GlyphName, glyphs
from needle_tui.widgets.log_model import LogModel, LogSource
from needle_tui.widgets.log_rows import NOTHING_FOUND
from needle_tui.widgets.picture_widget import PictureWidget

_STYLE_CLASSES = {
    log_rows.TEXT: "log-view--text",
    log_rows.CUT: "log-view--cut",
    log_rows.MATCH: "log-view--match",
    log_rows.CURRENT: "log-view--current",
    log_rows.STATUS: "log-view--status",
}


class LogView(PictureWidget, can_focus=True):
    """The last lines of a log. What is read while scrolled back holds still, whatever is added below."""

    STYLE_CLASSES = _STYLE_CLASSES
    REDRAW_INTERVAL_S = 0.5  # every line that comes moves all the others, and all of them are sent
    COMPONENT_CLASSES: ClassVar[set[str]] = set(_STYLE_CLASSES.values())
    DEFAULT_CSS = """
    LogView { height: 1fr; min-height: 1; }
    LogView > .log-view--text { color: $foreground; }
    LogView > .log-view--cut { color: $text-muted; }
    LogView > .log-view--match { text-style: underline; color: $accent; }
    LogView > .log-view--current { text-style: reverse; }
    LogView > .log-view--status { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_rows(-1)", "Back", show=False),
        Binding("down", "scroll_rows(1)", "Forward", show=False),
        Binding("pageup", "scroll_pages(-1)", "Page back", show=False),
        Binding("pagedown", "scroll_pages(1)", "Page forward", show=False),
        Binding("home", "oldest", "Oldest line", show=False),
        Binding("end", "follow", "Follow"),
        Binding("w", "wrap", "Wrap lines"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "found(1)", "Next found"),
        Binding("N", "found(-1)", "Previous found", show=False),
        Binding("escape", "end_search", "End search", show=False),
    ]

    def __init__(
        self,
        *,
        glyph_set: GlyphName | None = None,
        empty_text: str = "no output yet",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._model = LogModel(empty_text, glyphs(glyph_set).cut)

    def draw(self, width: int, height: int) -> Picture:
        """The rows in sight."""
        return self._model.draw(width, height)

    def show(self, log: LogSource) -> None:
        """Show newer lines. While scrolled back they wait, unless the log is another one."""
        self._model.show(log)
        self.redraw_soon(more_follows=False)

    def clear(self) -> None:
        """Forget all lines and follow again."""
        self._model.clear()
        self.redraw()

    @property
    def following(self) -> bool:
        """Whether the newest line is kept in sight."""
        return self._model.top is None

    def follow(self) -> None:
        """Go to the newest line and stay there."""
        self._model.follow()
        self.redraw()

    def scroll_rows(self, by: int) -> None:
        """Scroll `by` rows down, up when negative; at the newest row it follows again."""
        self._model.scroll(by)
        self.redraw()

    def find(self, text: str) -> int:
        """Search the lines there are, whatever the case, and go to the last one found; returns how many."""
        self._model.find(text)
        self.redraw()
        return len(self._model.found.lines)

    def find_next(self, by: int = 1) -> None:
        """Go to the next line found, or the previous one with -1; round the ends."""
        self._model.find_next(by)
        self.redraw()

    @property
    def wrap(self) -> bool:
        """Whether long lines are wrapped rather than cut."""
        return self._model.wrap

    @wrap.setter
    def wrap(self, wrap: bool) -> None:
        self._model.set_wrap(wrap)
        self.redraw()

    def action_scroll_rows(self, by: int) -> None:
        self.scroll_rows(by)

    def action_scroll_pages(self, by: int) -> None:
        self.scroll_rows(by * max(1, self.content_size.height - 2))

    def action_oldest(self) -> None:
        self._model.scroll_to_oldest()
        self.redraw()

    def action_follow(self) -> None:
        self.follow()

    def action_wrap(self) -> None:
        self.wrap = not self.wrap

    def action_search(self) -> None:
        self._model.typed = ""
        self.redraw()

    def action_found(self, by: int) -> None:
        self.find_next(by)

    def action_end_search(self) -> None:
        self._model.found = NOTHING_FOUND
        self.redraw()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """While a search is typed, what can be typed is text, not a command."""
        return self._model.typed is not None and character is not None and character.isprintable()

    def on_key(self, event: events.Key) -> None:
        """Type a search: every change searches at once; enter keeps it, escape drops it."""
        typed = self._model.typed
        if typed is None:
            return
        if event.key == "enter":
            self._model.typed = None
        elif event.key == "escape":
            self._model.typed, self._model.found = None, NOTHING_FOUND
        elif event.key == "backspace":
            self._type(typed[:-1])
        elif event.character and event.is_printable:
            self._type(typed + event.character)
        else:
            return
        event.stop()
        event.prevent_default()
        self.redraw()

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text is typed."""
        if self._model.typed is not None:
            event.stop()
            self._type(self._model.typed + event.text.split("\n", 1)[0])

    def on_blur(self) -> None:
        """Typing ends when the keys go elsewhere."""
        self._model.typed = None
        self.redraw()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Three rows back."""
        event.stop()
        self.scroll_rows(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Three rows forward."""
        event.stop()
        self.scroll_rows(3)

    def _type(self, text: str) -> None:
        self._model.typed = text
        self.find(text)
