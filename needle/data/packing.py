"""Several examples to a row, so that little is computed on padding, in one shape for a whole run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from needle.data.tokenizer import TokenizedExample

LENGTH_STEP = 64

Lengths = npt.NDArray[np.int32]


class Shape(NamedTuple):
    """The shape of every batch of a run: `rows` of `length` tokens."""

    rows: int
    length: int


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """Examples side by side in rows; an example is never split.

    tokens (R, T) int32, 0 where padded; segments (R, T) int32, 1.. for the examples of a row, 0 where padded;
    target_mask (R, T) bool, true where the loss counts.
    """

    tokens: npt.NDArray[np.int32]
    segments: npt.NDArray[np.int32]
    target_mask: npt.NDArray[np.bool_]
    useful_tokens: int
    target_tokens: int


def plan_packing(batches: Iterable[Sequence[int] | Lengths], *, attention_length: int = 1024) -> Shape:
    """The cheapest shape into which every batch packs, from the examples' lengths batch by batch.

    Cost is tokens computed times (1 + length / attention_length): `attention_length` is the row length at
    which attention costs as much as all the rest. Lengths are multiples of 64. Raises ValueError without
    any batch.
    """
    lengths = _descending(batches)
    shortest = _rounded_up(int(lengths.max()))
    most_tokens = int(lengths.sum(axis=1, dtype=np.int64).max())

    def cost(rows: float, length: int) -> float:
        return rows * length * (1 + length / attention_length)

    best = Shape(_rows_needed(lengths, shortest), shortest)
    for length in range(shortest + LENGTH_STEP, _rounded_up(most_tokens) + 1, LENGTH_STEP):
        if most_tokens * (1 + length / attention_length) >= cost(*best):
            break
        if cost(-(-most_tokens // length), length) < cost(*best):
            best = min(best, Shape(_rows_needed(lengths, length), length), key=lambda shape: cost(*shape))
    return best


def pack(examples: Sequence[TokenizedExample], shape: Shape) -> PackedBatch:
    """One batch of this shape, the longest examples placed first. Raises ValueError when they do not fit."""
    batches = pack_all(examples, shape)
    if len(batches) > 1:
        raise ValueError(f"{len(examples)} examples do not fit in {shape.rows} rows of {shape.length} tokens")
    return batches[0]


def pack_all(examples: Sequence[TokenizedExample], shape: Shape) -> list[PackedBatch]:
    """As few batches of this shape as first-fit-decreasing needs; at least one, perhaps all padding.

    For what may be batched in any way, as a validation set. Raises ValueError when an example is longer
    than a row.
    """
    rows = _first_fit_decreasing(examples, shape.length)
    groups = [rows[start : start + shape.rows] for start in range(0, len(rows), shape.rows)]
    return [_laid_out(group, shape) for group in groups or [[]]]


def _first_fit_decreasing(examples: Sequence[TokenizedExample], length: int) -> list[list[TokenizedExample]]:
    rows: list[list[TokenizedExample]] = []
    free: list[int] = []
    for example in sorted(examples, key=len, reverse=True):
        if len(example) > length:
            raise ValueError(f"the example of line {example.line} has {len(example)} tokens, a row {length}")
        row = next((row for row, room in enumerate(free) if len(example) <= room), len(rows))
        if row == len(rows):
            rows.append([])
            free.append(length)
        rows[row].append(example)
        free[row] -= len(example)
    return rows


def _laid_out(rows: Sequence[Sequence[TokenizedExample]], shape: Shape) -> PackedBatch:
    tokens, segments = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    target_mask = np.zeros(shape, np.bool_)
    for row, examples in enumerate(rows):
        start = 0
        for segment, example in enumerate(examples, 1):
            place = slice(start, start := start + len(example))
            tokens[row, place] = example.tokens
            segments[row, place] = segment
            target_mask[row, place] = example.target_mask
    return PackedBatch(tokens, segments, target_mask, int((segments > 0).sum()), int(target_mask.sum()))


def _descending(batches: Iterable[Sequence[int] | Lengths]) -> Lengths:
    """(N, B) int32: each batch's lengths, longest first, filled up with zeros."""
    rows = [np.sort(np.asarray(batch, np.int32))[::-1] for batch in batches]
    if not any(len(row) for row in rows):
        raise ValueError("there is no batch to pack")
    lengths = np.zeros((len(rows), max(len(row) for row in rows)), np.int32)
    for batch, row in zip(lengths, rows, strict=True):
        batch[: len(row)] = row
    return lengths


def _rows_needed(lengths: Lengths, length: int) -> int:
    """Rows that the worst batch needs: first-fit-decreasing on all batches at once, example by example."""
    count, most = lengths.shape
    free = np.full((count, most), length, np.int32)
    every, used = np.arange(count), 0
    for wanted in lengths.T:
        row = (free[:, : used + 1] >= wanted[:, None]).argmax(axis=1)
        free[every, row] -= wanted
        used = max(used, int(row[wanted > 0].max(initial=-1)) + 1)
    return used


def _rounded_up(length: int) -> int:
    return -(-length // LENGTH_STEP) * LENGTH_STEP
