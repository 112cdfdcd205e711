"""What a Needle model is made of: its configuration and the geometry that follows from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from needle.errors import InputError

_ENGRAM_HEAD_WIDTH = 128
CONVOLUTION_TAPS = 4


@dataclass(frozen=True)
class TransformerConfig:
    """The architecture of one model; field names are those of published checkpoints.

    `flash`, `remat` and `scan_unroll` are execution hints kept for round trips: `Execution` decides here.
    """

    vocab_size: int = 8192
    d_model: int = 512
    attn_dim: int = 0
    num_heads: int = 8
    num_kv_heads: int = 4
    num_layers: int = 12
    max_seq_len: int = 2048
    pad_token_id: int = 0
    contrastive_dim: int = 128
    rope_theta: float = 100_000.0
    dtype: str = "bfloat16"
    engram_orders: tuple[int, ...] = (2, 3)
    engram_heads: int = 0
    engram_slots: int = 8192
    engram_layers: tuple[int, ...] = (2, 15)
    mhc_lanes: int = 4
    kv_window: int = 0
    kv_bits: int = 8
    act_bits: int = 8
    weight_bits: str = ""
    flash: bool = True
    remat: bool = True
    scan_unroll: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "engram_orders", tuple(int(order) for order in self.engram_orders))
        object.__setattr__(self, "engram_layers", tuple(int(layer) for layer in self.engram_layers))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TransformerConfig:
        """A configuration from a checkpoint; keys this version does not know are ignored."""
        known = {field.name for field in dataclasses.fields(cls)}
        try:
            return cls(**{name: value for name, value in saved.items() if name in known})
        except (TypeError, ValueError) as error:
            raise InputError(f"this model's configuration cannot be read: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, as plain values."""
        return dataclasses.asdict(self)

    @property
    def attention_dim(self) -> int:
        """Width of all query heads together."""
        return self.attn_dim or self.d_model

    @property
    def head_dim(self) -> int:
        return self.attention_dim // self.num_heads

    @property
    def kv_dim(self) -> int:
        """Width of all key heads together."""
        return self.num_kv_heads * self.head_dim

    @property
    def hadamard_size(self) -> int:
        """d_model rounded up to a power of two."""
        return 1 << (self.d_model - 1).bit_length()

    @property
    def engram_hash_heads(self) -> int:
        """Hash tables per n-gram order."""
        if self.engram_heads:
            return self.engram_heads
        return max(1, self.d_model // (max(1, len(self.engram_orders)) * _ENGRAM_HEAD_WIDTH))

    @property
    def engram_tables(self) -> int:
        return len(self.engram_orders) * self.engram_hash_heads

    @property
    def engram_width(self) -> int:
        """Width of one table's rows."""
        return self.d_model // self.engram_tables


def require_buildable(config: TransformerConfig) -> None:
    """Raise InputError with the reasons when no model has this geometry."""
    problems = _geometry_problems(config)
    if problems:
        raise InputError(f"this model's configuration cannot be built: {'; '.join(problems)}")


def _geometry_problems(config: TransformerConfig) -> list[str]:
    """Every reason why this geometry cannot be built, the first being the most basic."""
    sizes = (
        "vocab_size", "d_model", "num_heads", "num_kv_heads", "num_layers",
        "max_seq_len", "engram_slots", "mhc_lanes",
    )  # fmt: skip
    problems = [
        f"{name} is {getattr(config, name)!r}" for name in sizes if not _is_count(getattr(config, name))
    ]
    if problems:
        return problems
    if config.attention_dim % config.num_heads:
        problems.append(f"{config.num_heads} heads do not divide a width of {config.attention_dim}")
    elif config.head_dim % 2:
        problems.append(f"the head width {config.head_dim} is odd")
    if config.num_heads % config.num_kv_heads:
        problems.append(f"{config.num_kv_heads} kv heads do not divide {config.num_heads} heads")
    beyond = [site for site in config.engram_layers if not 0 <= site < config.num_layers]
    if beyond:
        problems.append(f"engram site {beyond[0]} is not one of its {config.num_layers} layers")
    if config.engram_layers and not config.engram_orders:
        problems.append("it has engram sites but no engram orders")
    elif config.engram_layers and config.d_model % config.engram_tables:
        problems.append(f"{config.engram_tables} engram tables do not divide a width of {config.d_model}")
    return problems


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
