"""Training for JAX with a record anyone can read; importing it costs nothing and loads no JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from needle.runs.writer import report
from needle.version import VERSION

__version__ = VERSION
__all__ = ["__version__", "report"]


def __getattr__(name: str) -> object:
    """`needle.report`, loaded when first used: a program that only asks for the version waits for nothing."""
    if name == "report":
        from needle.runs.writer import report

        return report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
