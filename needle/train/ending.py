"""How a trainer's end is told: one place turns whatever stopped it into words for a person."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from needle.errors import NeedleError
from needle.units import bytes_text

_REMEDY_FOR_MEMORY = (
    "lower --batch-size or --max-len, keep the data set on the host (--placement host), "
    "or free the memory that other programs use"
)
_EXTRA = {"jax", "jaxlib", "flax", "optax", "safetensors", "sentencepiece"}
_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = re.compile(r"allocat\w*\s+([\d.]+)\s*(KiB|MiB|GiB|TiB)?")
_MEMORY_SIGNS = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory")


class Ending(NamedTuple):
    """The end of an attempt.

    `expected` is False when the traceback belongs into the log; `abandons_work` is True when something
    that cannot be interrupted, such as a compilation, may still be going on in this process.
    """

    outcome: Literal["finished", "stopped", "failed"]
    reason: str = ""
    exit_status: int = 0
    expected: bool = True
    abandons_work: bool = False


class StoppedEarly(Exception):  # noqa: N818 - a request that was heeded is no error
    """A stop was asked for before the first step."""


def ending_of(error: BaseException) -> Ending:
    """The end that an exception means; it may have come in the middle of anything."""
    return _told(error)._replace(abandons_work=True)


def last_line(error: BaseException) -> str:
    """The line a traceback ends with, the one that says what happened."""
    text = str(error).strip()
    name = type(error).__name__
    return f"{name}: {text.splitlines()[0]}" if text else name


def _told(error: BaseException) -> Ending:
    if isinstance(error, (StoppedEarly, KeyboardInterrupt)):
        return Ending("stopped", str(error) or "stopped before the first step")
    if isinstance(error, NeedleError):
        return Ending("failed", str(error), error.exit_status)
    if isinstance(error, ModuleNotFoundError) and error.name in _EXTRA:
        remedy = "install what training needs: pip install 'needle-tui[train]'"
        return Ending("failed", f"{error.name} is not installed in this environment\n  {remedy}", 1)
    if _is_memory(error):
        return Ending("failed", f"{_memory_words(str(error))}\n  {_REMEDY_FOR_MEMORY}", 1, expected=False)
    return Ending("failed", last_line(error), 1, expected=False)


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in _MEMORY_SIGNS)


def _memory_words(text: str) -> str:
    found = _SIZE.search(text)
    if not found:
        return "out of memory"
    size_bytes = float(found[1].rstrip(".")) * _UNITS[found[2] or ""]
    return f"out of memory: one piece of {bytes_text(size_bytes)} was asked for and is not free"
