"""What commands that use a model share: from the flags that name one to its weights."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from needle.config import FinetuneSettings
from needle.data.locate import locate_base, locate_tokenizer
from needle.data.selection import check_vocabulary
from needle.data.tokenizer import Tokenizer
from needle.errors import InputError

if TYPE_CHECKING:
    from needle.model.architecture import Execution
    from needle.model.configuration import TransformerConfig
    from needle.model.export import Numerics


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A checkpoint with its adapter merged, nested float32 parameters; `numerics` is how it ships."""

    name: str
    params: Mapping[str, Any]
    config: TransformerConfig
    tokenizer: Tokenizer
    tokenizer_path: Path
    numerics: Numerics
    execution: Execution
    warnings: tuple[str, ...]


def load_model(arguments: argparse.Namespace) -> LoadedModel:
    """Start JAX and read everything the flags name. Raises NeedleError in words for a person."""
    settings = FinetuneSettings(checkpoint=arguments.checkpoint, tokenizer=arguments.tokenizer or "")
    path, name, _ = locate_base(settings)
    tokenizer_path = locate_tokenizer(settings, path)
    _choose_backend(arguments.backend)
    try:
        return _loaded(arguments, path, name, tokenizer_path)
    except ModuleNotFoundError as error:
        raise missing_package(error, "using a model") from None


def missing_package(error: ModuleNotFoundError, what: str) -> InputError:
    """What to install when `what` needs a package that is not there."""
    return InputError(
        f"{what} needs {(error.name or '').partition('.')[0]}, which is not installed",
        remedy="install it with: pip install 'needle-tui[train]'",
    )


def _choose_backend(name: str) -> None:
    """Before JAX is loaded: it fixes its platforms then. Memory is left to a training that may be running."""
    if name != "auto":
        os.environ["JAX_PLATFORMS"] = name
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def _loaded(arguments: argparse.Namespace, path: Path, name: str, tokenizer_path: Path) -> LoadedModel:
    from needle.model.architecture import Execution
    from needle.model.export import Sources, assemble
    from needle.model.parameters import unflatten
    from needle.train.backend import check_backend, start_backend

    facts = (start_backend if arguments.backend == "auto" else check_backend)(arguments.backend)
    print(f"JAX {facts.jax_version} on {facts.platform} ({facts.device})", file=sys.stderr, flush=True)
    adapter = Path(arguments.lora).expanduser() if arguments.lora else None
    merged = assemble(Sources(path, tokenizer_path, adapter, arguments.bits, arguments.bits_map or "", name))
    tokenizer = Tokenizer.load(tokenizer_path)
    check_vocabulary(tokenizer, tokenizer_path, name, merged.config.vocab_size)
    return LoadedModel(
        name,
        unflatten(merged.flat),
        merged.config,
        tokenizer,
        tokenizer_path,
        merged.numerics,
        Execution(unroll=facts.platform == "METAL"),
        merged.warnings,
    )
