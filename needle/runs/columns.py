"""Numpy columns that grow at their end, and the column of one metric."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)


class Growing(Generic[Number]):
    """An array that grows at its end. A view taken from it is read-only and stays as it was."""

    def __init__(self, dtype: np.dtype[Number]) -> None:
        self._buffer: NDArray[Number] = np.empty(256, dtype)
        self._length = 0
        self._shared = False

    def __len__(self) -> int:
        return self._length

    def extend(self, values: NDArray[Number]) -> None:
        """Append values (N,)."""
        end = self._length + len(values)
        if end > len(self._buffer):
            grown = np.empty(max(end, 2 * len(self._buffer)), self._buffer.dtype)
            grown[: self._length] = self._buffer[: self._length]
            self._buffer, self._shared = grown, False
        self._buffer[self._length : end] = values
        self._length = end

    def peek(self) -> NDArray[Number]:
        """All values (N,), for a look that is over before the next change."""
        return self._buffer[: self._length]

    def view(self) -> NDArray[Number]:
        """All values (N,), to keep: what changes later changes elsewhere."""
        self._shared = True
        view = self.peek()
        view.flags.writeable = False
        return view

    def cut(self, length: int) -> None:
        """Keep the first `length` values."""
        if self._shared:
            self._buffer, self._shared = self._buffer[: max(length, 256)].copy(), False
        self._length = length

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Keep the values where the mask (N,) holds."""
        kept = self._buffer[: self._length][mask]
        self._buffer, self._length, self._shared = kept, len(kept), False


@dataclass
class Column:
    """One metric's values, and the table rows they are of: all from `start` on, or those listed."""

    start: int
    values: Growing[np.float64] = field(default_factory=lambda: Growing(np.dtype(np.float64)))
    rows: Growing[np.int64] | None = None

    def row_numbers(self) -> slice | Integers:
        """Which table rows the values are of."""
        if self.rows is None:
            return slice(self.start, self.start + len(self.values))
        return self.rows.view()

    def append(self, first_row: int, rows: Integers | None, values: Floats) -> None:
        """Add values of table rows `first_row + rows`, or of all from `first_row` on."""
        if self.rows is None and rows is None and self.start + len(self.values) == first_row:
            self.values.extend(values)
            return
        if self.rows is None:
            self.rows = Growing(np.dtype(np.int64))
            self.rows.extend(np.arange(self.start, self.start + len(self.values)))
        self.rows.extend(first_row + (np.arange(len(values)) if rows is None else rows))
        self.values.extend(values)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Keep the values of the table rows where the mask holds, and renumber the rows."""
        renumbered = np.cumsum(mask) - 1
        if self.rows is None:
            own = mask[self.start : self.start + len(self.values)]
            self.start = int(np.count_nonzero(mask[: self.start]))
            self.values.keep(own)
            return
        rows = self.rows.peek()
        kept = mask[rows]
        self.values.keep(kept)
        self.rows = Growing(np.dtype(np.int64))
        self.rows.extend(renumbered[rows[kept]])

    def cut(self, row_count: int) -> None:
        """Keep the values of the table's first `row_count` rows."""
        if self.rows is None:
            self.values.cut(min(len(self.values), max(0, row_count - self.start)))
            self.start = min(self.start, row_count)
            return
        length = int(np.searchsorted(self.rows.peek(), row_count))
        self.rows.cut(length)
        self.values.cut(length)
