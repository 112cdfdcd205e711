"""The end of a text log, cheap however long the log is, and what is added to it."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from needle.runs.cursor import FileCursor
from needle.runs.text import shown_line

_BLOCK_BYTES = 1 << 16
_MOST_BYTES_BACK = 8 << 20
_LONGEST_KEPT_BYTES = 1 << 14


class LogTail:
    """The last `keep` lines of a log, as inert text (see `shown_line`).

    A line still being written is shown as it stands. `appended` counts the complete lines read; when
    `generation` changes, the log was replaced or ran ahead and the lines are others than before.
    """

    def __init__(self, path: Path | str, keep: int = 2000) -> None:
        self.path = Path(path)
        self.keep = keep
        self.appended = 0
        self.generation = 0
        self._complete: deque[str] = deque(maxlen=keep)
        self._pending = b""
        self._left_out = 0
        self._cursor = FileCursor(self.path)
        self._opened = False

    @property
    def lines(self) -> list[str]:
        """The lines, oldest first."""
        unfinished = shown_line(self._pending, self._left_out)
        found = [*self._complete, unfinished] if unfinished else list(self._complete)
        return found[-self.keep :]

    def poll(self) -> bool:
        """Read what is new. Returns whether any line changed."""
        if not self._opened or self._cursor.size_bytes() - self._cursor.offset > _MOST_BYTES_BACK:
            self._jump_to_end()
        changed = False
        while True:
            piece = self._cursor.read()
            if piece.restarted:
                self._forget()
            if piece.data:
                self._feed(piece.data)
            changed = changed or bool(piece.data) or piece.restarted
            if not piece.more:
                return changed

    def _jump_to_end(self) -> None:
        try:
            with open(self.path, "rb", buffering=0) as file:
                start = _start_of_last_lines(file.fileno(), self.keep)
        except OSError:
            return
        if self._opened:
            self._forget()
        self._opened = True
        self._cursor.move(start)

    def _forget(self) -> None:
        self._complete.clear()
        self._pending, self._left_out = b"", 0
        self.generation += 1

    def _feed(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._add_to_pending(first)
        for line in others[-self.keep :]:
            self._complete.append(shown_line(self._pending, self._left_out))
            self._pending, self._left_out = b"", 0
            self._add_to_pending(line)
        self.appended += len(others)

    def _add_to_pending(self, data: bytes) -> None:
        """Keep of an unfinished line what will be shown: its last redrawing, and of that the beginning."""
        grown = self._pending + data
        redrawn = grown.rfind(b"\r", 0, len(grown.rstrip(b"\r")))
        if redrawn >= 0:
            grown, self._left_out = grown[redrawn + 1 :], 0
        elif self._left_out:
            grown, self._left_out = self._pending, self._left_out + len(data)
        self._left_out += max(0, len(grown) - _LONGEST_KEPT_BYTES)
        self._pending = grown[:_LONGEST_KEPT_BYTES]


def _start_of_last_lines(descriptor: int, count: int) -> int:
    """Where the last `count` lines begin, looking back at most 8 MiB."""
    size = os.fstat(descriptor).st_size
    limit = max(0, size - _MOST_BYTES_BACK)
    place, found = size, 0
    while place > limit:
        start = max(limit, place - _BLOCK_BYTES)
        block = os.pread(descriptor, place - start, start)
        newlines = block.count(b"\n")
        if found + newlines > count:
            return start + _after_newline(block, found + newlines - count)
        found, place = found + newlines, start
    return limit


def _after_newline(block: bytes, number: int) -> int:
    """The place behind the block's `number`th newline."""
    place = 0
    for _ in range(number):
        place = block.index(b"\n", place) + 1
    return place
