"""Following one growing file: what is new since last time, whatever happened to the file meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_ANCHOR_BYTES = 64
_SLICE_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 20


@dataclass(frozen=True)
class Piece:
    """New bytes of a file. `restarted`: the file was cut or replaced, and these are its first bytes."""

    data: bytes = b""
    restarted: bool = False
    more: bool = False


class FileCursor:
    """A place in a file that may grow, be cut, be replaced or not exist yet.

    The file is open only while it is read, and when nothing changed a read is one `stat`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.modified_at = 0.0
        self._seen: tuple[int, int, int, int] | None = None
        self._identity: tuple[int, int] | None = None
        self._anchor = b""

    def size_bytes(self) -> int:
        """The size of the file now; 0 when there is none."""
        try:
            return os.stat(self.path).st_size
        except OSError:
            return 0

    def read(self, max_bytes: int = _SLICE_BYTES) -> Piece:
        """The next bytes, `max_bytes` at most. An unreadable file has none."""
        try:
            now = os.stat(self.path)
            seen = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)
            if seen == self._seen and self.offset == now.st_size:
                return Piece()
            with open(self.path, "rb", buffering=0) as file:
                return self._read_open(file.fileno(), max_bytes)
        except OSError:
            return Piece()

    def move(self, offset: int) -> None:
        """Go on from `offset` of the file as it is now."""
        self.offset, self._anchor, self._seen = offset, b"", None

    def _read_open(self, descriptor: int, max_bytes: int) -> Piece:
        now = os.fstat(descriptor)
        restarted = self._was_replaced(descriptor, now)
        if restarted:
            self.offset, self._anchor = 0, b""
        data = os.pread(descriptor, max_bytes, self.offset)
        self.offset += len(data)
        self._anchor = (self._anchor + data[-_ANCHOR_BYTES:])[-_ANCHOR_BYTES:]
        self._identity = (now.st_dev, now.st_ino)
        self._seen = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)
        self.modified_at = now.st_mtime
        return Piece(data, restarted, more=self.offset < now.st_size)

    def _was_replaced(self, descriptor: int, now: os.stat_result) -> bool:
        if self._identity is None:
            return False
        if self._identity != (now.st_dev, now.st_ino) or now.st_size < self.offset:
            return True
        # A file cut and grown past our place again, or a reused inode: what we read last is not there now.
        return os.pread(descriptor, len(self._anchor), self.offset - len(self._anchor)) != self._anchor


@dataclass(frozen=True)
class Lines:
    """Complete lines, each ending with a newline. `dropped` counts lines too long to keep."""

    block: bytes = b""
    restarted: bool = False
    more: bool = False
    dropped: int = 0


class LineCursor:
    """Complete lines of a growing file; a half-written last line is kept back until its end arrives.

    With `last_bytes` the first read begins that far from the file's end, at a line's beginning.
    """

    def __init__(self, path: Path, *, last_bytes: int | None = None) -> None:
        self.cursor = FileCursor(path)
        self._pending = b""
        self._skipping = False
        size = self.cursor.size_bytes()
        if last_bytes is not None and size > last_bytes:
            # One byte earlier, so that a line beginning exactly there is not taken for the rest of another.
            self.cursor.move(size - last_bytes - 1)
            self._skipping = True

    def read(self, max_bytes: int = _SLICE_BYTES) -> Lines:
        """The complete lines among the next `max_bytes` bytes."""
        piece = self.cursor.read(max_bytes)
        if piece.restarted:
            self._pending, self._skipping = b"", False
        data, end = piece.data, piece.data.rfind(b"\n") + 1
        block = self._pending + data[:end] if end else b""
        self._pending = data[end:] if end else self._pending + data
        if self._skipping and block:
            block, self._skipping = block[block.index(b"\n") + 1 :], False
        return Lines(block, piece.restarted, piece.more, self._drop_endless())

    def _drop_endless(self) -> int:
        """Forget a line that never ends, so that it cannot fill the memory; the next line is whole again."""
        if self._skipping:
            self._pending = b""
        if len(self._pending) <= LONGEST_LINE_BYTES:
            return 0
        self._pending, self._skipping = b"", True
        return 1
