"""What lies where in a `.cact` archive: header, records and the order of tensors, for writer and reader.

The format is the model page's section "Files"; `read_archive` and `write_archive` are in `archive`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from needle.errors import InputError
from needle.model.bitmap import canonical_name
from needle.model.configuration import CONVOLUTION_TAPS, TransformerConfig
from needle.model.parameters import (
    CONFIDENCE_PROBES,
    CONTRASTIVE_PROBES,
    STACK_ATTENTION,
    Shape,
    parameter_shapes,
)

TAG = 0x05E12A83
ALIGNMENT = 64
FLOAT16, FLOAT32, QUANTISED, RAW = 1, 2, 3, 4
HEADS = {"contrastive_head": 1, "confidence_head": 2}
MANIFEST = "manifest"
TOKENIZER = "tokenizer"
MOST_ORDERS = MOST_SITES = 4
HEADER_FORMAT = struct.Struct("<29If")
RECORD_FORMAT = struct.Struct("<BBH4IQQII")

_BLOCK = "stack/layers/block"
_CACHE_BYTES = 23 * 2**19  # 11.5 MiB
_SHORTEST_WINDOW = 160


class Header(NamedTuple):
    """The 30 fields that begin an archive, in their order; `sites` are layer numbers."""

    tag: int
    tensor_count: int
    codebook_length: int
    kv_window: int
    kv_bits: int
    vocab_size: int
    d_model: int
    num_heads: int
    num_kv_heads: int
    num_layers: int
    head_dim: int
    max_seq_len: int
    hadamard_size: int
    lanes: int
    engram_slots: int
    engram_width: int
    engram_tables: int
    taps: int
    dilation: int
    order_count: int
    orders: tuple[int, ...]
    site_count: int
    sites: tuple[int, ...]
    rope_theta: float

    def packed(self) -> bytes:
        *counts, order_count, orders, site_count, sites, theta = self
        return HEADER_FORMAT.pack(*counts, order_count, *_four(orders), site_count, *_four(sites), theta)

    @classmethod
    def unpacked(cls, content: bytes) -> Header:
        """Raises ValueError when its lists are longer than they can be."""
        fields = HEADER_FORMAT.unpack_from(content)
        order_count, orders, site_count, sites = fields[19], fields[20:24], fields[24], fields[25:29]
        if order_count > MOST_ORDERS or site_count > MOST_SITES:
            raise ValueError("its engram geometry is impossible")
        lists = (orders[:order_count], site_count, sites[:site_count])
        return cls._make((*fields[:20], *lists, fields[29]))


class Record(NamedTuple):
    """Where one tensor lies and how to read it; `bits` is the code of a codebook."""

    dtype: int
    shape: Shape
    offset: int
    size_bytes: int
    group: int = 0
    bits: int = 0

    def packed(self) -> bytes:
        return RECORD_FORMAT.pack(
            self.dtype, len(self.shape), 0, *_four(self.shape),
            self.offset, self.size_bytes, self.group, self.bits,
        )  # fmt: skip

    @classmethod
    def unpacked(cls, content: bytes, position: int) -> Record:
        dtype, axes, _, *sizes, offset, size_bytes, group, bits = RECORD_FORMAT.unpack_from(content, position)
        return cls(dtype, tuple(sizes[:axes]), offset, size_bytes, group, bits)


class Entry(NamedTuple):
    """One tensor of an archive: the leaf at `path`, or its part for one layer, as an array of `shape`.

    `name` is its name in bit maps, empty for what is kept as float16. `transposed`: stored [out, in].
    """

    path: str
    shape: Shape
    layer: int | None = None
    name: str = ""
    transposed: bool = False


def header_of(config: TransformerConfig, tensor_count: int, codebook_length: int) -> Header:
    """The header of a model. Raises InputError for a geometry that archives cannot hold."""
    if len(config.engram_orders) > MOST_ORDERS or len(config.engram_layers) > MOST_SITES:
        raise InputError(
            f"this model has {len(config.engram_orders)} engram orders and {len(config.engram_layers)} "
            f"sites; an archive holds at most {MOST_ORDERS} of each"
        )
    return Header(
        tag=TAG,
        tensor_count=tensor_count,
        codebook_length=codebook_length,
        kv_window=kv_window(config),
        kv_bits=config.kv_bits,
        vocab_size=config.vocab_size,
        d_model=config.d_model,
        num_heads=config.num_heads,
        num_kv_heads=config.num_kv_heads,
        num_layers=config.num_layers,
        head_dim=config.head_dim,
        max_seq_len=config.max_seq_len,
        hadamard_size=config.hadamard_size,
        lanes=config.mhc_lanes,
        engram_slots=config.engram_slots,
        engram_width=config.engram_width if config.engram_orders else 0,
        engram_tables=config.engram_tables,
        taps=CONVOLUTION_TAPS,
        dilation=max(config.engram_orders, default=0),
        order_count=len(config.engram_orders),
        orders=config.engram_orders,
        site_count=len(config.engram_layers),
        sites=config.engram_layers,
        rope_theta=config.rope_theta,
    )


def config_of(header: Header, *, contrastive_dim: int) -> TransformerConfig:
    """The configuration a header describes; what it does not say is as published."""
    orders = max(1, header.order_count)
    return TransformerConfig(
        vocab_size=header.vocab_size,
        d_model=header.d_model,
        attn_dim=header.num_heads * header.head_dim,
        num_heads=header.num_heads,
        num_kv_heads=header.num_kv_heads,
        num_layers=header.num_layers,
        max_seq_len=header.max_seq_len,
        contrastive_dim=contrastive_dim,
        rope_theta=header.rope_theta,
        engram_orders=header.orders,
        engram_heads=header.engram_tables // orders,
        engram_slots=header.engram_slots,
        engram_layers=header.sites,
        mhc_lanes=header.lanes,
        kv_window=header.kv_window,
        kv_bits=header.kv_bits,
    )


def kv_window(config: TransformerConfig) -> int:
    """Positions the engine keeps: what its cache memory allows, or fewer where the configuration says so."""
    kv, width, sites = config.kv_dim, config.d_model, len(config.engram_layers)
    of_layers = config.num_layers * (2 * kv + 2 * (kv // 32) * 4)
    position_bytes = of_layers + sites * (width + width // 32 * 4)
    affordable = _CACHE_BYTES // position_bytes // 32 * 32
    budget = min(max(affordable, _SHORTEST_WINDOW), config.max_seq_len)
    return min(config.kv_window, budget) if config.kv_window else budget


def tensor_count(num_layers: int, site_count: int, head_count: int) -> int:
    """Tensors of an archive, the tokenizer among them; `len(entries(...)) + 1` without making them."""
    per_head, manifest = 3, 1 if head_count else 0
    return 1 + 14 * num_layers + 9 + 4 * site_count + 1 + manifest + per_head * head_count + 1


def entries(config: TransformerConfig, heads: Sequence[str]) -> list[Entry]:
    """Every tensor but the tokenizer, in the order of archives; `heads` are those the model has."""
    shapes = parameter_shapes(config)
    listed = [_entry("embedding/embedding", shapes)]
    for layer in range(config.num_layers):
        listed += [_entry(path, shapes, layer) for path in _layer_paths()]
    listed += [_entry(f"stack/mhc_{name}", shapes) for name in _mixing_names()]
    for site in range(len(config.engram_layers)):
        parts = ("embedding", "key_proj/kernel", "value_proj/kernel", "taps")
        listed += [_entry(f"engrams_{site}/{part}", shapes) for part in parts]
    listed.append(_entry("stack/final_norm/scale", shapes))
    return [*listed, *_head_entries(config, heads)]


def _layer_paths() -> Iterator[str]:
    yield f"{_BLOCK}/ZCRMSNorm_0/scale"
    for name in ("q_proj/kernel", "k_proj/kernel", "v_proj/kernel", "q_norm/scale", "k_norm/scale",
                 "gate_proj/kernel", "out_proj/kernel"):  # fmt: skip
        yield f"{STACK_ATTENTION}/{name}"
    for name in ("post_attn_norm/scale", "attn_gate", "pre_hada_norm/scale",
                 "hadamard_mlp/d1", "hadamard_mlp/d2", "hadamard_mlp/d3"):  # fmt: skip
        yield f"{_BLOCK}/{name}"


def _mixing_names() -> Iterator[str]:
    for kind in ("a", "b", "phi"):
        for part in ("pre", "post", "res"):
            yield f"{kind}_{part}"


def _entry(path: str, shapes: dict[str, Shape], layer: int | None = None) -> Entry:
    """The leaf at `path`: matrices [out, in], phis (L · lanes, n · d), tables (tables · slots, width)."""
    shape, name = shapes[path], canonical_name(path)
    if layer is not None:
        shape = shape[1:] or (1,)
    transposed = bool(name) and not path.endswith("embedding")
    if transposed:
        shape = (*shape[:-2], shape[-1], shape[-2])
    if name and len(shape) == 3:
        shape = (shape[0] * shape[1], shape[2])
    return Entry(path, shape, layer, name, transposed)


def _head_entries(config: TransformerConfig, heads: Sequence[str]) -> Iterator[Entry]:
    if heads:
        yield Entry(MANIFEST, (len(heads),))
    sizes = {
        "contrastive_head": (CONTRASTIVE_PROBES, config.contrastive_dim),
        "confidence_head": (CONFIDENCE_PROBES, 1),
    }
    for head in heads:
        probes, outputs = sizes[head]
        yield Entry(f"{head}/probes", (probes, config.d_model))
        yield Entry(f"{head}/proj/kernel", (outputs, probes * config.d_model), transposed=True)
        yield Entry(f"{head}/proj/bias", (outputs,))


def _four(values: Sequence[int]) -> tuple[int, ...]:
    return (*values, *(0,) * (4 - len(values)))
