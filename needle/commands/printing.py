"""How commands print: remarks beside their output, and documents for scripts."""

from __future__ import annotations

import sys

import msgspec


def say(text: str) -> None:
    """One line to standard error, at once."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    """One indented JSON document to standard output."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
