"""The Needle model: architecture, checkpoints and adapters. JAX is imported by the names that need it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from needle.model.architecture import Execution, SimpleAttentionNetwork, init_params
    from needle.model.checkpoints import load_checkpoint, save_checkpoint
    from needle.model.configuration import TransformerConfig
    from needle.model.presets import PRESETS

_HOMES = {
    "Execution": "architecture",
    "SimpleAttentionNetwork": "architecture",
    "init_params": "architecture",
    "load_checkpoint": "checkpoints",
    "save_checkpoint": "checkpoints",
    "TransformerConfig": "configuration",
    "PRESETS": "presets",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


__all__ = [
    "PRESETS",
    "Execution",
    "SimpleAttentionNetwork",
    "TransformerConfig",
    "init_params",
    "load_checkpoint",
    "save_checkpoint",
]
