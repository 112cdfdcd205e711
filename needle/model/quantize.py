"""Rounding of weights to the levels they ship with ("CQ"; the model page, "Quantisation"). No JAX.

A group of 128 weights along the input axis is turned by the Walsh-Hadamard matrix, which makes it look like a
Gaussian whatever it was, and kept as one length and one level number for each entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from needle.model.bitmap import BitMap, canonical_name, ships
from needle.model.codebooks import GROUP_SIZE, Codebook, codebook
from needle.model.parameters import flatten, unflatten

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

_SMALLEST_NORM = 1e-12


class Groups(NamedTuple):
    """A matrix as stored: level numbers `indices` (rows, groups · 128), lengths `norms` (rows, groups)."""

    indices: Bytes
    norms: npt.NDArray[np.float16]


def quantised_params(params: Mapping[str, Any], bit_map: BitMap) -> dict[str, Any]:
    """The weights as they will ship, float32: what an archive of these parameters and this map reads back as.

    Quantised leaves rounded to their levels, the others to float16; what an archive does not hold is absent.
    """
    shipped = {path: leaf for path, leaf in flatten(params).items() if ships(path)}
    return unflatten({path: shipped_leaf(path, leaf, bit_map) for path, leaf in shipped.items()})


def shipped_leaf(path: str, leaf: Any, bit_map: BitMap) -> Floats:
    """One leaf of `quantised_params`, of any leading axes."""
    exact = np.asarray(leaf, np.float32)
    name = canonical_name(path)
    if not name:
        return exact.astype(np.float16).astype(np.float32)
    # Layer by layer, as in archives: the last digit of a float32 product may depend on its shape.
    parts = exact if path.startswith("stack/layers/") else exact[None]
    return np.stack([_rounded(path, part, bit_map.bits_of(name)) for part in parts]).reshape(exact.shape)


def rows_of(path: str, leaf: Floats) -> Floats:
    """A quantised leaf as rows along its input axis: tables as they lie, kernels and phis transposed."""
    lying = leaf if _is_table(path) else np.swapaxes(leaf, -1, -2)
    return lying.reshape(-1, lying.shape[-1])


def leaf_of(path: str, rows: Floats, shape: tuple[int, ...]) -> Floats:
    """The leaf of this shape whose `rows_of` these are."""
    if _is_table(path):
        return rows.reshape(shape)
    *leading, inputs, outputs = shape
    return np.ascontiguousarray(np.swapaxes(rows.reshape(*leading, outputs, inputs), -1, -2))


def quantise(rows: Floats, bits: float) -> Groups:
    """Level numbers and lengths of rows (R, width), padded with zeros to whole groups.

    In float64: a sum in another order, on another machine, then chooses the same level, and two builds of
    one model are the same bytes. A value halfway between two levels takes the lower.
    """
    levels = np.asarray(codebook(bits).levels, np.float32).astype(np.float64)
    turned = _grouped(rows).astype(np.float64) @ _walsh().astype(np.float64)
    norms = np.linalg.norm(turned, axis=-1)
    unit = turned / np.maximum(norms, _SMALLEST_NORM)[..., None]
    indices = np.searchsorted((levels[1:] + levels[:-1]) / 2, unit, side="left")
    with np.errstate(over="ignore"):
        return Groups(indices.astype(np.uint8).reshape(len(rows), -1), norms.astype(np.float16))


def dequantise(groups: Groups, bits: float, width: int) -> Floats:
    """The rows (R, width) float32 that these groups stand for."""
    levels = np.asarray(codebook(bits).levels, np.float32)
    turned = levels[groups.indices.reshape(*groups.norms.shape, GROUP_SIZE)]
    turned = turned * groups.norms.astype(np.float32)[..., None]
    rows = (turned.reshape(-1, GROUP_SIZE) @ _walsh()).reshape(len(groups.indices), -1)
    return np.ascontiguousarray(rows[:, :width])


def pack(indices: Bytes, bits: float) -> bytes:
    """Indices end to end, 8 of them in as many bytes as an index has bits, least significant bit first."""
    book = codebook(bits)
    stored = np.asarray(book.stored, np.uint8)[indices.reshape(-1)]
    single_bits = (stored[:, None] >> np.arange(book.index_bits, dtype=np.uint8)) & 1
    return np.packbits(single_bits.reshape(-1), bitorder="little").tobytes()


def unpack(content: bytes, bits: float) -> Bytes:
    """The flat indices that `pack` stored. Raises ValueError for a number that no level has."""
    book = codebook(bits)
    single_bits = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")
    weights = (1 << np.arange(book.index_bits)).astype(np.uint8)
    stored = single_bits.reshape(-1, book.index_bits) @ weights
    return _indices_of(stored.astype(np.uint8), book)


def group_count(width: int) -> int:
    """Groups in a row of this width."""
    return -(-width // GROUP_SIZE)


def _indices_of(stored: Bytes, book: Codebook) -> Bytes:
    unknown = len(book.levels)
    table = np.full(1 << book.index_bits, unknown, np.uint8)
    table[list(book.stored)] = np.arange(unknown)
    indices = table[stored]
    if (indices == unknown).any():
        raise ValueError(f"an index is none of the {unknown} levels of {book.label} bits")
    return indices


def _rounded(path: str, leaf: Floats, bits: float) -> Floats:
    rows = rows_of(path, leaf)
    return leaf_of(path, dequantise(quantise(rows, bits), bits, rows.shape[-1]), leaf.shape)


def _is_table(path: str) -> bool:
    return path.rpartition("/")[2] == "embedding"


def _grouped(rows: Floats) -> Floats:
    """(R, width) -> (R, groups, 128), zeros after the end."""
    groups = group_count(rows.shape[-1])
    padded = np.pad(rows, ((0, 0), (0, groups * GROUP_SIZE - rows.shape[-1])))
    return padded.reshape(len(rows), groups, GROUP_SIZE)


@lru_cache(maxsize=1)
def _walsh() -> Floats:
    """The orthonormal Walsh-Hadamard matrix of one group, in Sylvester order."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < GROUP_SIZE:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (matrix / np.sqrt(GROUP_SIZE)).astype(np.float32)
