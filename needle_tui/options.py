"""What a person asks of `needle-tui`, light enough to be imported before anything is painted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Options(NamedTuple):
    """The screen to open first, where runs are, and how the terminal is used."""

    start: str = "launch"
    runs: Path | None = None
    run: Path | None = None
    read_only: bool = False
    mouse: bool = True
    theme: str = ""
