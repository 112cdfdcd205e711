"""The table of runs: one line a run, columns as the width allows, repainted only where a row changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from needle.units import age_text, number_text
from needle_tui.fleet import RunRow
from needle_tui.phases import WORD_WIDTH, look_of, phase_text
from needle_tui.text import column, inert
from needle_tui.widgets.lines import Lines
from needle_tui.widgets.sparkline import sparkline_text


@dataclass(frozen=True)
class Column:
    """A column of numbers or words; `least_width` is the table's width from which it is shown."""

    title: str
    width: int
    least_width: int
    value: Callable[[RunRow, float], str]
    right: bool = True


COLUMNS = (
    Column("task", 9, 128, lambda row, now: row.task, right=False),
    Column("step/total", 13, 0, lambda row, now: _steps(row)),
    Column("loss", 9, 60, lambda row, now: _number(row.loss)),
    Column("best", 9, 76, lambda row, now: _number(row.best)),
    Column(
        "tokens/s", 9, 96, lambda row, now: "" if row.tokens_per_s is None else f"{row.tokens_per_s:,.0f}"
    ),
    Column("device", 8, 112, lambda row, now: row.device, right=False),
    Column("age", 10, 72, lambda row, now: age_text(now - row.created_at)),
)
_SPARK_WIDTH = 12
_SPARK_FROM = 106
_STATE_WIDTH = WORD_WIDTH + 2
_LEAST_NAME = 12


class RunTable(ScrollView, can_focus=True):
    """Rows newest first; the cursor stays on its run when others appear."""

    DEFAULT_CSS = """
    RunTable { height: 1fr; padding: 0 1; overflow-x: hidden; scrollbar-size-vertical: 1; }
    RunTable > .run-table--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"run-table--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "move(-10)", "Ten up", show=False),
        Binding("pagedown", "move(10)", "Ten down", show=False),
        Binding("home,g", "move(-100000)", "Newest", show=False),
        Binding("end,G", "move(100000)", "Oldest", show=False),
        Binding("enter", "choose", "Open"),
    ]

    class Chosen(Message):
        """A run was opened."""

        def __init__(self, row: RunRow) -> None:
            super().__init__()
            self.row = row

    class Moved(Message):
        """The cursor is on another run."""

    def __init__(self) -> None:
        super().__init__(id="run-table")
        self._rows: tuple[RunRow, ...] = ()
        self._lines: list[Content] = []
        self._cursor = 0
        self._now = 0.0

    @property
    def current(self) -> RunRow | None:
        """The run under the cursor."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    def show(self, rows: tuple[RunRow, ...], now: float) -> None:
        """Newer rows; only lines that changed are painted again."""
        current = self.current
        before, self._rows, self._now = self._lines, rows, now
        self._cursor = _place_of(current, rows, self._cursor)
        self._lines = [row_content(row, now, self.size.width) for row in rows]
        if len(before) != len(rows):
            self.virtual_size = Size(self.size.width, len(rows))
            self.refresh()
            return
        for y, line in enumerate(self._lines):
            if not line.is_same(before[y]):
                self.refresh_line(y)

    def on_resize(self, event: events.Resize) -> None:
        """Columns follow the width."""
        self._lines = []
        self.show(self._rows, self._now)

    def render_line(self, y: int) -> Strip:
        """One row, the cursor's marked."""
        at = y + self.scroll_offset.y
        width = self.size.width
        if at >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        style = self.visual_style
        if at == self._cursor and self.has_focus:
            style += self.get_visual_style("run-table--cursor")
        return Visual.to_strips(self, self._lines[at], width, 1, style, apply_selection=False, pad=True)[0]

    def on_focus(self) -> None:
        """Show the cursor."""
        self.refresh_line(self._cursor)

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.refresh_line(self._cursor)

    def action_move(self, by: int) -> None:
        """Move the cursor, within the rows."""
        self._go_to(self._cursor + by)

    def action_choose(self) -> None:
        """Open the run under the cursor."""
        if self.current is not None:
            self.post_message(self.Chosen(self.current))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked run; a second click opens it."""
        at = event.y + self.scroll_offset.y
        if at < len(self._rows):
            again = at == self._cursor and self.has_focus
            self._go_to(at)
            if again:
                self.action_choose()

    def _go_to(self, at: int) -> None:
        self.refresh_line(self._cursor)
        self._cursor = max(0, min(at, len(self._rows) - 1))
        self.refresh_line(self._cursor)
        self.post_message(self.Moved())
        top, height = self.scroll_offset.y, self.size.height
        if self._cursor < top or self._cursor >= top + height:
            y = self._cursor if self._cursor < top else self._cursor - height + 1
            self.scroll_to(y=y, animate=False, immediate=True)


class RunTableHead(Lines):
    """The columns' names, over the table."""

    DEFAULT_CSS = """
    RunTableHead { height: 1; padding: 0 1; color: $muted; }
    """

    def lines(self, width: int) -> list[Content]:
        """One line."""
        return [head_content(width)]


def shown_columns(width: int) -> tuple[Column, ...]:
    """The columns there is room for."""
    return tuple(one for one in COLUMNS if width >= one.least_width)


def head_content(width: int) -> Content:
    """The names over their columns."""
    columns = shown_columns(width)
    parts = [column("  state", _STATE_WIDTH), column("name", _name_width(width, columns))]
    parts += [column(one.title, one.width, right=one.right) for one in columns]
    return Content("  ".join(parts))


def row_content(row: RunRow, now: float, width: int) -> Content:
    """One run as a line of exactly the table's columns."""
    columns = shown_columns(width)
    state = phase_text(look_of(row.phase, stalled=row.stalled))
    parts = [
        state.pad_right(max(0, _STATE_WIDTH - state.cell_length)),
        Content.assemble(
            (column(inert(row.name), _name_width(width, columns)), "bold" if row.is_live else "")
        ),
    ]
    for one in columns:
        text = column(inert(one.value(row, now)), one.width, right=one.right)
        parts.append(Content.assemble((text, "$muted" if one.title in _QUIET else "")))
    if width >= _SPARK_FROM:
        parts.append(Content.assemble((sparkline_text(row.spark, _SPARK_WIDTH), "$accent")))
    return Content("  ").join(parts)


_QUIET = ("task", "device", "age")


def _name_width(width: int, columns: tuple[Column, ...]) -> int:
    taken = _STATE_WIDTH + 2 + sum(one.width + 2 for one in columns)
    taken += _SPARK_WIDTH + 2 if width >= _SPARK_FROM else 0
    return max(_LEAST_NAME, width - taken)


def _place_of(current: RunRow | None, rows: tuple[RunRow, ...], otherwise: int) -> int:
    """Where the cursor's run is now."""
    if current is not None:
        for at, row in enumerate(rows):
            if row.directory == current.directory:
                return at
    return max(0, min(otherwise, len(rows) - 1))


def _steps(row: RunRow) -> str:
    return f"{row.step:,}/{row.total:,}" if row.total else f"{row.step:,}"


def _number(value: float | None) -> str:
    return "" if value is None else number_text(value)
