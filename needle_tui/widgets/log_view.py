"""The end of a run's log: follows it, stops following when scrolled back, and searches what it holds.

Only the rows that are seen are rendered, each as one piece of text, and only those that changed are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol, Self

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from needle_tui.text import inert
from needle_tui.widgets import log_rows
from needle_tui.widgets.chart_picture import EMPTY, Picture, cells, changed_spans, row, runs
from needle_tui.widgets.glyphs import GlyphName, glyphs
from needle_tui.widgets.log_rows import Frame, Place


class LogLines(Protocol):
    """The last lines of a log, as inert text, oldest first; `needle.runs.tail.LogTail` is one.

    `appended` counts the lines read so far; another `generation` means that the log was replaced.
    """

    @property
    def lines(self) -> Sequence[str]: ...
    @property
    def appended(self) -> int: ...
    @property
    def generation(self) -> int: ...


_NO_LINES: Sequence[str] = ()
_PARTS = {
    log_rows.TEXT: "text",
    log_rows.CUT: "cut",
    log_rows.MATCH: "match",
    log_rows.CURRENT: "current",
    log_rows.STATUS: "status",
}


class LogView(Widget, can_focus=True):
    """The last lines of a log. What is read while scrolled back holds still, whatever is added below."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"log-view--{part}" for part in _PARTS.values()}
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
    ALLOW_SELECT = False

    def __init__(
        self,
        *,
        glyph_set: GlyphName | None = None,
        empty_text: str = "no output yet",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._glyphs = glyphs(glyph_set)
        self._empty_text = empty_text
        self._newest: Sequence[str] = _NO_LINES
        self._newest_appended = 0
        self._lines: Sequence[str] = _NO_LINES
        self._appended = 0
        self._generation = 0
        self._top: Place | None = None
        self._found = log_rows.NOTHING_FOUND
        self._typed: str | None = None
        self._wrap = False
        self._picture: Picture = EMPTY
        self._styles_of: dict[str, Style] = {}

    def show(self, log: LogLines) -> None:
        """Show newer lines. While scrolled back they wait, unless the log is another one."""
        if log.generation != self._generation:
            self._generation = log.generation
            self._top, self._found = None, log_rows.NOTHING_FOUND
        self._newest, self._newest_appended = log.lines, log.appended
        if self.following:
            self._take_newest()
        self._redraw()

    def clear(self) -> None:
        """Forget all lines and follow again."""
        self._newest = _NO_LINES
        self._top, self._found, self._typed = None, log_rows.NOTHING_FOUND, None
        self._take_newest()
        self._redraw()

    @property
    def following(self) -> bool:
        """Whether the newest line is kept in sight."""
        return self._top is None

    @property
    def picture(self) -> Picture:
        """What is shown now, as text and styles."""
        return self._picture

    def scroll_rows(self, by: int) -> None:
        """Scroll `by` rows down, up when negative; at the newest row it follows again."""
        frame = self._frame(scrolled=True)
        if self._top is None:
            if by >= 0:
                return
            self._top = log_rows.last_page(self._lines, self._frame(scrolled=False))
        elif by > 0 and self._top >= log_rows.last_page(self._lines, frame):
            self._take_newest_from_here()
        top = log_rows.moved(self._lines, self._top, by, frame)
        at_end = by > 0 and top >= log_rows.last_page(self._lines, frame)
        if at_end and self._newest_appended == self._appended:
            self.follow()
        else:
            self._top = min(top, log_rows.last_page(self._lines, frame))
            self._redraw()

    def follow(self) -> None:
        """Go to the newest line and stay there."""
        self._top = None
        self._take_newest()
        self._redraw()

    def find(self, text: str) -> int:
        """Search the lines there are, whatever the case, and go to the newest one found; returns how many."""
        near = (
            len(self._lines) - 1 if self._top is None else self._top.line + self._frame(scrolled=True).height
        )
        self._found = log_rows.find(self._lines, text, near)
        self._go_to_found()
        return len(self._found.lines)

    def find_next(self, by: int = 1) -> None:
        """Go to the next line found, or the previous one with -1; round the ends."""
        self._found = self._found.moved(by)
        self._go_to_found()

    @property
    def wrap(self) -> bool:
        """Whether long lines are wrapped rather than cut."""
        return self._wrap

    @wrap.setter
    def wrap(self, wrap: bool) -> None:
        self._wrap = wrap
        if self._top is not None:
            self._top = Place(self._top.line)
        self._redraw()

    def action_scroll_rows(self, by: int) -> None:
        self.scroll_rows(by)

    def action_scroll_pages(self, by: int) -> None:
        self.scroll_rows(by * max(1, self._frame(scrolled=True).height - 1))

    def action_oldest(self) -> None:
        self.scroll_rows(-len(self._lines) * max(1, self.content_size.height))

    def action_follow(self) -> None:
        self.follow()

    def action_wrap(self) -> None:
        self.wrap = not self.wrap

    def action_search(self) -> None:
        self._typed = ""
        self._redraw()

    def action_found(self, by: int) -> None:
        self.find_next(by)

    def action_end_search(self) -> None:
        self._found = log_rows.NOTHING_FOUND
        self._redraw()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """While a search is typed, what can be typed is text, not a command."""
        return self._typed is not None and character is not None and character.isprintable()

    def on_key(self, event: events.Key) -> None:
        """Type a search: every change searches at once; enter keeps it, escape drops it."""
        if self._typed is None:
            return
        if event.key == "enter":
            self._typed = None
        elif event.key == "escape":
            self._typed, self._found = None, log_rows.NOTHING_FOUND
        elif event.key == "backspace":
            self._type(self._typed[:-1])
        elif event.character and event.is_printable:
            self._type(self._typed + event.character)
        else:
            return
        event.stop()
        event.prevent_default()
        self._redraw()

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text is typed."""
        if self._typed is not None:
            event.stop()
            self._type(self._typed + event.text.split("\n", 1)[0])

    def on_blur(self) -> None:
        """Typing ends when the keys go elsewhere."""
        if self._typed is not None:
            self._typed = None
            self._redraw()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Three rows back."""
        event.stop()
        self.scroll_rows(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Three rows forward."""
        event.stop()
        self.scroll_rows(3)

    def render_line(self, y: int) -> Strip:
        """One row of the picture, which is made here only when the size is new."""
        width, height = self.content_size
        if (self._picture.width, len(self._picture.rows)) != (width, height):
            self._picture = self._draw()
        if y >= len(self._picture.rows):
            return Strip.blank(width, self.rich_style)
        pieces = [Segment(text, self._style(style)) for text, style in runs(self._picture.rows[y])]
        return Strip(pieces, width)

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """As every widget's; colours are looked up again, for they may be the cause."""
        self._styles_of = {}
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _type(self, text: str) -> None:
        self._typed = text
        self.find(text)

    def _go_to_found(self) -> None:
        """Bring the current line found into sight, a third of the way down."""
        line = self._found.line
        if line is not None:
            frame = self._frame(scrolled=True)
            top = log_rows.moved(self._lines, Place(line), -(frame.height // 3), frame)
            self._top = min(top, log_rows.last_page(self._lines, frame))
        self._redraw()

    def _take_newest(self) -> None:
        self._lines, self._appended = self._newest, self._newest_appended

    def _take_newest_from_here(self) -> None:
        """Go on reading below the last line that was held still. One line may be seen twice, none is missed."""
        added = self._newest_appended - self._appended
        if self._top is None or not added:
            return
        below = len(self._lines) - self._top.line
        self._take_newest()
        self._top = Place(max(0, len(self._lines) - added - below), 0)
        if self._found.text:
            self._found = log_rows.find(self._lines, self._found.text, self._top.line)

    def _frame(self, *, scrolled: bool) -> Frame:
        """The room for lines; a row goes to the status while it has something to say."""
        width, height = self.content_size
        has_status = scrolled or self._typed is not None
        return Frame(width, max(1, height - int(has_status and height > 1)), self._wrap, self._glyphs.cut)

    def _draw(self) -> Picture:
        width, height = self.content_size
        if not self._lines and self._typed is None:
            rows = [row(cells(self._empty_text), log_rows.STATUS, width)] + [row("", " ", width)] * (
                height - 1
            )
            return Picture(width, tuple(rows[:height]))
        frame = self._frame(scrolled=self._top is not None)
        top = log_rows.last_page(self._lines, frame) if self._top is None else self._top
        rows = log_rows.rows_from(self._lines, top, frame, self._found)
        if len(rows) < height:
            rows.append(row(cells(inert(self._status())), log_rows.STATUS, width))
        return Picture(width, tuple(rows[:height]))

    def _status(self) -> str:
        """What is searched for and found, and what waits below."""
        words = []
        if self._typed is not None:
            words.append(f"/{self._typed}_")
        elif self._found.text:
            words.append(f"/{self._found.text}")
        if self._found.text:
            count = len(self._found.lines)
            words.append(f"{self._found.current + 1} of {count}" if count else "not found")
        newer = self._newest_appended - self._appended
        if self._top is not None:
            words.append(f"{newer:,} newer lines: End follows" if newer else "End follows")
        return "   ".join(words)

    def _redraw(self) -> None:
        """Make the picture and send what differs from the one on the screen."""
        if not self.is_mounted:
            return
        before, self._picture = self._picture, self._draw()
        spans = changed_spans(before, self._picture)
        if spans:
            self.refresh(*(Region(span.x, span.y, span.width, 1) for span in spans))

    def _style(self, letter: str) -> Style:
        """The terminal style of a picture's one-letter style."""
        if letter not in self._styles_of:
            part = _PARTS.get(letter)
            looked_up = self.get_component_rich_style(f"log-view--{part}") if part else self.rich_style
            self._styles_of[letter] = looked_up
        return self._styles_of[letter]
