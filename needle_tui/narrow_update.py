"""Sending only the cells that changed.

Textual 8 paints a changed part of a widget's line from the widget's left edge on. Over a slow link the rest
of the line is most of what is sent, so a partial update is cropped at both ends here.
"""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.control import Control
from textual._compositor import ChopsUpdate


class NarrowUpdate(ChopsUpdate):
    """A partial update that is written from the first changed cell to the last, and no further."""

    def render_segments(self, console: Console) -> str:
        """The update as it is written to the terminal."""
        written: list[str] = []
        for y, left, right in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                first, last = max(x, left), min(end, right)
                if strip is not None and first < last:
                    written.append(Control.move_to(first, y).segment.text)
                    written.append(strip.crop(first - x, last - x).render(console))
        return "".join(written)


def narrowed(renderable: RenderableType | None) -> RenderableType | None:
    """The same update, cropped; anything but a partial update as it is."""
    if type(renderable) is ChopsUpdate:
        return NarrowUpdate(renderable.chops, renderable.spans, renderable.chop_ends)
    return renderable
