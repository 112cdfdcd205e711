"""The base of widgets that are drawn as a picture: only cells that changed are sent to the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import monotonic
from typing import ClassVar, Self

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from needle_tui.widgets.chart_picture import EMPTY, Picture, changed_spans, runs


class PictureWidget(Widget):
    """A widget whose content is a `Picture`; `STYLE_CLASSES` maps one-letter styles to component classes."""

    STYLE_CLASSES: ClassVar[Mapping[str, str]] = {}
    REDRAW_INTERVAL_S: ClassVar[float] = 0.2
    """What comes by itself is shown at most this often; what a person does is shown at once."""
    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._picture: Picture = EMPTY
        self._styles_by_letter: dict[str, Style] = {}
        self._redrawn_at = -math.inf
        self._is_redraw_due = False

    def draw(self, width: int, height: int) -> Picture:
        """The picture in `width` x `height` cells, which are one at least."""
        raise NotImplementedError

    @property
    def picture(self) -> Picture:
        """What is shown now, as text and styles."""
        return self._picture

    def redraw_soon(self, *, more_follows: bool = True) -> None:
        """Draw again when `REDRAW_INTERVAL_S` allows it: once for any number of changes until then.

        Where more changes may follow in the same breath, that is after them.
        """
        if self._is_redraw_due or not self.is_mounted:
            return
        self._is_redraw_due = True
        wait_s = self._redrawn_at + self.REDRAW_INTERVAL_S - monotonic()
        if wait_s > 0:
            self.set_timer(wait_s, self._redraw_if_due)
        elif more_follows:
            self.call_later(self._redraw_if_due)
        else:
            self.redraw()

    def _redraw_if_due(self) -> None:
        if self._is_redraw_due:
            self.redraw()

    def redraw(self) -> None:
        """Draw the picture now and send what differs from the one on the screen."""
        self._is_redraw_due = False
        width, height = self.content_size
        if not (self.is_mounted and width and height):
            self._picture = EMPTY
            return
        before, self._picture = self._picture, self.draw(width, height)
        spans = changed_spans(before, self._picture)
        if spans:
            self._redrawn_at = monotonic()
            self.refresh(*(Region(span.x, span.y, span.width, 1) for span in spans))

    def on_show(self) -> None:
        """What changed while it was hidden."""
        self.redraw()

    def render_line(self, y: int) -> Strip:
        """One row of the picture, which is drawn here only when the size is new."""
        width, height = self.content_size
        if (self._picture.width, len(self._picture.rows)) != (width, height):
            self._picture = self.draw(width, height) if width and height else EMPTY
        if y >= len(self._picture.rows):
            return Strip.blank(width, self.rich_style)
        pieces = [Segment(text, self._style(letter)) for text, letter in runs(self._picture.rows[y])]
        return Strip(pieces, width)

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """As every widget's; colours are looked up again, for they may be the cause."""
        self._styles_by_letter = {}
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def _style(self, letter: str) -> Style:
        """The terminal style of a one-letter style."""
        if letter not in self._styles_by_letter:
            name = self.STYLE_CLASSES.get(letter)
            self._styles_by_letter[letter] = self.get_component_rich_style(name) if name else self.rich_style
        return self._styles_by_letter[letter]
