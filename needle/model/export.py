"""From a checkpoint and an adapter to the archive that ships. No JAX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from needle.errors import InputError
from needle.model.adapters import Adapter, AdapterFile, load_adapter, require_fits
from needle.model.archive import EncodedArchive, Tensor, encode_archive
from needle.model.archive_layout import HEADS, MANIFEST, TOKENIZER, kv_window
from needle.model.bitmap import BitMap, canonical_name, parse_bit_map
from needle.model.checkpoints import read_checkpoint
from needle.model.codebooks import CODEBOOKS, WIDTHS_TEXT
from needle.model.configuration import TransformerConfig
from needle.model.parameters import parameter_shapes, unflatten
from needle.model.raw_tokenizer import raw_tokenizer

_TRAIN_AGAIN = "train the adapter again"


@dataclass(frozen=True)
class Sources:
    """What an archive is built from; `bits` and `bits_map` are what was asked for, if anything was.

    `base_name` is what a run on this checkpoint calls it, where that is not the file's name.
    """

    checkpoint: Path
    tokenizer: Path
    adapter: Path | None = None
    bits: float | None = None
    bits_map: str = ""
    base_name: str = ""


class Numerics(NamedTuple):
    """The bits to build with, why, and what a person should know of them."""

    bit_map: BitMap
    reason: str
    warning: str = ""


class Row(NamedTuple):
    """One line of the summary: tensors of one kind. `bits` is 16 for float16, None for what is no number."""

    name: str
    tensors: int
    bits: float | None
    parameters: int
    size_bytes: int


@dataclass(frozen=True, eq=False)
class Assembled:
    """A checkpoint with its adapter merged: flat parameters, and how they ship."""

    flat: Mapping[str, Any]
    config: TransformerConfig
    numerics: Numerics
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """A finished archive that was not written yet, and what to say about it."""

    archive: EncodedArchive
    numerics: Numerics
    kv_window: int
    warnings: tuple[str, ...]


def build_archive(sources: Sources) -> Built:
    """Read, merge, quantise. Raises InputError for sources that are unreadable or do not belong together."""
    merged_model = assemble(sources)
    config = merged_model.config
    tokenizer = raw_tokenizer(sources.tokenizer, config.vocab_size)
    archive = encode_archive(unflatten(merged_model.flat), config, merged_model.numerics.bit_map, tokenizer)
    return Built(archive, merged_model.numerics, kv_window(config), merged_model.warnings)


def assemble(sources: Sources) -> Assembled:
    """Read a checkpoint, merge the adapter if there is one, settle the bits. Raises InputError."""
    adapter = load_adapter(sources.adapter) if sources.adapter else None
    checkpoint = read_checkpoint(sources.checkpoint)
    config, flat = checkpoint.config, checkpoint.flat
    numerics = choose_numerics(adapter, config, bits=sources.bits, bits_map=sources.bits_map)
    if adapter:
        try:
            require_fits(adapter, config)
        except InputError as error:
            raise InputError(error.message, where=str(sources.adapter), remedy=error.remedy) from None
        flat = merged(flat, adapter.lora, adapter.scale)
    warnings = (numerics.warning, _base_warning(adapter, sources))
    return Assembled(flat, config, numerics, tuple(filter(None, warnings)))


def choose_numerics(
    adapter: AdapterFile | None, config: TransformerConfig, *, bits: float | None = None, bits_map: str = ""
) -> Numerics:
    """The bits an archive gets: those asked for, else the adapter's own, the checkpoint's, or 4.

    Raises InputError when what is asked contradicts what the adapter was trained for: its weights were chosen
    to be right after that rounding, and no other.
    """
    names = sorted({name for path in parameter_shapes(config) if (name := canonical_name(path))})
    sites = len(config.engram_layers)
    asked, flag = _asked(bits, bits_map, sites)
    trained = _trained(adapter, sites)
    if asked and trained and not asked.same_as(trained, names):
        raise InputError(
            f"{flag} contradicts the adapter, which was trained for {trained.words}",
            remedy="leave the flag out, or train the adapter again for these bits",
        )
    if asked:
        return Numerics(asked, f"asked for with {flag}", _untrained_warning(adapter, trained, asked))
    if trained:
        return Numerics(trained, "what the adapter was trained for")
    own = _recorded(
        config.weight_bits, "the checkpoint", BitMap().default, sites, "give --bits or --bits-map"
    )
    reason = "the checkpoint's own" if config.weight_bits else "the usual, nothing else was asked for"
    return Numerics(own, reason, _untrained_warning(adapter, trained, own))


def merged(flat: Mapping[str, Any], adapter: Adapter, scale: float) -> dict[str, Any]:
    """Flat parameters with W + scale · A·B in float32 for every adapted kernel W; the others as they were.

    The product is summed in float64 and rounded once, so that every machine gets the same archive.
    """
    changed = {}
    for path, matrices in adapter.items():
        a, b = (np.asarray(matrices[name], np.float64) for name in ("A", "B"))
        with np.errstate(over="ignore", invalid="ignore"):
            product = (a @ b).astype(np.float32)
            changed[path] = np.asarray(flat[path], np.float32) + np.float32(scale) * product
    return {**flat, **changed}


def summary(archive: EncodedArchive) -> list[Row]:
    """What an archive is made of, one row for each kind of tensor, in its order; they add up to the file."""
    kinds: dict[str, list[Tensor]] = {}
    for tensor in archive.tensors:
        kinds.setdefault(_kind(tensor), []).append(tensor)
    rows = [_row(name, tensors) for name, tensors in kinds.items()]
    rest = len(archive.content) - sum(row.size_bytes for row in rows)
    return [*rows, Row("header and padding", 0, None, 0, rest)]


def _asked(bits: float | None, bits_map: str, sites: int) -> tuple[BitMap | None, str]:
    """(what the flags ask for, how they spell it)."""
    if bits is not None and bits_map:
        raise InputError(
            f"--bits {bits:g} and --bits-map are two ways to say one thing",
            remedy=f"give one of them: --bits-map default={bits:g},…",
        )
    if bits_map:
        return parse_bit_map(bits_map, engram_sites=sites), f"--bits-map {bits_map}"
    return (None, "") if bits is None else (BitMap(bits), f"--bits {bits:g}")


def _trained(adapter: AdapterFile | None, sites: int) -> BitMap | None:
    """What an adapter says of itself; a map goes before a single width, which is then its default."""
    if adapter is None or not (adapter.qat_bits or adapter.qat_bits_map):
        return None
    bits = adapter.qat_bits or BitMap().default
    if not isinstance(bits, (int, float)) or bits not in CODEBOOKS:
        raise InputError(
            f"the adapter says it was trained for {bits!r:.40} bits; weights have {WIDTHS_TEXT}",
            remedy=_TRAIN_AGAIN,
        )
    return _recorded(str(adapter.qat_bits_map or ""), "the adapter", bits, sites, _TRAIN_AGAIN)


def _recorded(text: str, owner: str, default: float, sites: int, remedy: str) -> BitMap:
    """A map that a file carries: its mistakes are not those of a flag."""
    try:
        return parse_bit_map(text, default=default, engram_sites=sites)
    except InputError as error:
        raise InputError(f"{owner} carries a wrong {error.message}", remedy=remedy) from None


def _untrained_warning(adapter: AdapterFile | None, trained: BitMap | None, chosen: BitMap) -> str:
    if adapter is None or trained:
        return ""
    return (
        f"the adapter was trained without rounding; {chosen.words} may cost accuracy that training would keep"
    )


def _base_warning(adapter: AdapterFile | None, sources: Sources) -> str:
    """Two bases of one geometry cannot be told apart by shape; their names can be, in either format."""
    known = {sources.checkpoint.stem, Path(sources.base_name).stem}
    if adapter is None or not adapter.base or Path(adapter.base).stem in known:
        return ""
    return f"the adapter says it was trained on {adapter.base}, not on {sources.checkpoint.name}"


def _kind(tensor: Tensor) -> str:
    if tensor.name or tensor.path == TOKENIZER:
        return tensor.name or TOKENIZER
    if tensor.path == MANIFEST or tensor.path.partition("/")[0] in HEADS:
        return "output heads"
    return "norms, gates, mixing"


def _row(name: str, tensors: list[Tensor]) -> Row:
    bits = None if name == TOKENIZER else tensors[0].bits or 16
    counts = [tensor.parameters for tensor in tensors], [tensor.size_bytes for tensor in tensors]
    return Row(name, len(tensors), bits, sum(counts[0]), sum(counts[1]))
