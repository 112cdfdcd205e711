"""The state of a log pane, apart from any widget: its lines, where it is scrolled to, what is searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from needle_tui.text import inert
from needle_tui.widgets import log_rows
from needle_tui.widgets.chart_picture import BLANK_STYLE, Picture, cells, row
from needle_tui.widgets.log_rows import NOTHING_FOUND, Found, Frame, Place


class LogSource(Protocol):
    """The last lines of a log, as inert text, oldest first; `needle.runs.tail.LogTail` is one.

    `appended` counts the lines read so far; another `generation` means that the log was replaced.
    """

    @property
    def lines(self) -> Sequence[str]: ...
    @property
    def appended(self) -> int: ...
    @property
    def generation(self) -> int: ...


class LogModel:
    """What a log pane of `width` x `height` cells shows.

    While scrolled back (`top` is a place) it holds on to the lines it has, so that what is read stands still;
    newer ones wait.
    """

    def __init__(self, empty_text: str, cut_mark: str) -> None:
        self.wrap = False
        self.typed: str | None = None
        self.found: Found = NOTHING_FOUND
        self.top: Place | None = None
        self.width, self.height = 80, 24
        self._empty_text, self._cut_mark = empty_text, cut_mark
        self._newest: Sequence[str] = ()
        self._newest_appended = 0
        self._lines: Sequence[str] = ()
        self._appended = 0
        self._generation = 0

    def show(self, log: LogSource) -> None:
        """Take newer lines, at once or when following again."""
        if log.generation != self._generation:
            self._generation = log.generation
            self.top, self.found = None, NOTHING_FOUND
        self._newest, self._newest_appended = log.lines, log.appended
        if self.top is None:
            self._take_newest()

    def clear(self) -> None:
        """Forget all lines and follow again."""
        self._newest, self._newest_appended = (), 0
        self.top, self.found, self.typed = None, NOTHING_FOUND, None
        self._take_newest()

    def follow(self) -> None:
        """Go to the newest line and stay there."""
        self.top = None
        self._take_newest()

    def scroll(self, by: int) -> None:
        """Scroll `by` rows down, up when negative; at the newest row it follows again."""
        if self.top is None and by >= 0:
            return
        if self.top is None:
            self.top = log_rows.last_page(self._lines, self._frame())
        frame = self._frame()
        if by > 0 and self.top >= log_rows.last_page(self._lines, frame):
            self._take_newest_from_here(self.top)
        last = log_rows.last_page(self._lines, frame)
        self.top = min(log_rows.moved(self._lines, self.top, by, frame), last)
        if by > 0 and self.top == last and self._newest_appended == self._appended:
            self.follow()

    def scroll_to_oldest(self) -> None:
        """Go to the first line there is."""
        if log_rows.last_page(self._lines, self._frame()) > Place(0):
            self.top = Place(0)

    def find(self, text: str) -> None:
        """Search the lines there are and go to the last one found in sight or above."""
        near = len(self._lines) if self.top is None else self.top.line + self._frame().height
        self.found = log_rows.find(self._lines, text, near)
        self._go_to_found()

    def find_next(self, by: int) -> None:
        """Go to the next line found, or the previous one with -1; round the ends."""
        self.found = self.found.moved(by)
        self._go_to_found()

    def set_wrap(self, wrap: bool) -> None:
        """Wrap long lines, or cut them; the line at the top stays there."""
        self.wrap = wrap
        self.top = None if self.top is None else Place(self.top.line)

    def draw(self, width: int, height: int) -> Picture:
        """The picture in `width` x `height` cells."""
        self.width, self.height = width, height
        if not self._lines and self.typed is None:
            rows = [row(cells(inert(self._empty_text)), log_rows.STATUS, width)]
            rows += [row("", BLANK_STYLE, width)] * (height - 1)
            return Picture(width, tuple(rows))
        frame = self._frame()
        top = log_rows.last_page(self._lines, frame) if self.top is None else self.top
        rows = log_rows.rows_from(self._lines, top, frame, self.found)
        if frame.height < height:
            rows.append(row(cells(inert(self._status())), log_rows.STATUS, width))
        return Picture(width, tuple(rows))

    def _frame(self) -> Frame:
        """The room for lines; a row goes to the status while it has something to say."""
        has_status = self.height > 1 and (self.top is not None or self.typed is not None)
        return Frame(self.width, max(1, self.height - int(has_status)), self.wrap, self._cut_mark)

    def _status(self) -> str:
        """What is searched for and found, and what waits below."""
        words = []
        if self.typed is not None:
            words.append(f"/{self.typed}_")
        elif self.found.text:
            words.append(f"/{self.found.text}")
        if self.found.text:
            count = len(self.found.lines)
            words.append(f"{self.found.current + 1} of {count}" if count else "not found")
        if self.top is not None:
            newer = self._newest_appended - self._appended
            words.append(f"{newer:,} newer lines, End follows" if newer > 0 else "End follows")
        return "   ".join(words)

    def _go_to_found(self) -> None:
        """Bring the current line found into sight, a third of the way down."""
        line = self.found.line
        if line is None:
            return
        self.top = Place(line)
        frame = self._frame()
        top = log_rows.moved(self._lines, Place(line), -(frame.height // 3), frame)
        self.top = min(top, log_rows.last_page(self._lines, frame))

    def _take_newest(self) -> None:
        self._lines, self._appended = self._newest, self._newest_appended

    def _take_newest_from_here(self, top: Place) -> None:
        """Go on below the last line that was held still. One line may be seen twice, none is missed."""
        added = self._newest_appended - self._appended
        if not added:
            return
        below = len(self._lines) - top.line
        self._take_newest()
        self.top = Place(max(0, len(self._lines) - added - below))
        if self.found.text:
            self.found = log_rows.find(self._lines, self.found.text, self.top.line)
