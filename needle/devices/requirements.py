"""What an interpreter needs to run training, and what the one at hand lacks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from needle.devices.platforms import version_tuple
from needle.version import VERSION

NO_JAX = "JAX is not installed here"
LEAST_TEXT = "3.11"
_COMPANIONS = ("flax", "optax", "safetensors", "sentencepiece")
_OWN_PACKAGE = Path(__file__).resolve().parent.parent


def age_problem(python: str) -> str:
    """Why a Python of this version cannot run needle; empty when it can, or when the version is unknown."""
    if python and version_tuple(python) < version_tuple(LEAST_TEXT):
        return f"Python {python} is too old: needle needs {LEAST_TEXT} or newer"
    return ""


def shortcoming(packages: Mapping[str, str]) -> str:
    """What an interpreter with these packages lacks for training, whatever needle it has."""
    if "jax" not in packages:
        return NO_JAX
    missing = [name for name in _COMPANIONS if name not in packages]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        return f"{', '.join(missing)} {verb} not installed here"
    return ""


def needle_problem(packages: Mapping[str, str], extra_path: Iterable[str]) -> str:
    """Why `python -m needle.train` would not be this program there; empty when it would.

    `extra_path` are the directories that come before the interpreter's own, as PYTHONPATH names them.
    """
    for directory in extra_path:
        package = Path(directory or os.curdir) / "needle"
        if (package / "__init__.py").exists():
            return (
                "" if package.resolve() == _OWN_PACKAGE else f"another package named needle is in {directory}"
            )
    version = packages.get("needle-tui", "")
    if not version:
        return "needle-tui is not installed here"
    if version != VERSION:
        return f"it has needle-tui {version}, and this is {VERSION}"
    return ""


def wanted_extra(packages: Mapping[str, str], default: str = "train") -> str:
    """The extra that completes an interpreter without changing the JAX it has."""
    if "jax-metal" in packages:
        return "metal"
    return "train" if "jax" in packages else default
