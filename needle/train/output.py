"""Where the trained adapter goes, and never over somebody else's file."""

from __future__ import annotations

from pathlib import Path

from needle.config import FinetuneSettings
from needle.errors import InputError
from needle.runs.events import parse_events
from needle.runs.record import RunFiles

DEFAULT_NAME = "adapter.safetensors"
SUFFIXES = (".safetensors", ".pkl")


def adapter_path(settings: FinetuneSettings, files: RunFiles) -> Path:
    """The file that `out` names, else one in the run directory. Raises InputError when it is taken.

    A file that an earlier attempt of this run wrote is its own to replace.
    """
    if not settings.out:
        return files.artifacts / DEFAULT_NAME
    path = Path(settings.out).expanduser().absolute()
    if path.suffix not in SUFFIXES:
        raise InputError("an adapter file ends in .safetensors or .pkl", where=settings.out, field="out")
    if is_taken(path, settings, files):
        raise InputError(
            "already exists", where=settings.out, remedy="choose another --out, or --overwrite", field="out"
        )
    return path


def is_taken(path: Path, settings: FinetuneSettings, files: RunFiles) -> bool:
    """Whether a file is there that this run has no right to replace."""
    return path.exists() and not settings.overwrite and str(path) not in _own_artifacts(files)


def _own_artifacts(files: RunFiles) -> set[str]:
    try:
        events, _ = parse_events(files.events.read_bytes())
    except OSError:
        return set()
    return {str(event.get("path")) for event in events if event["kind"] == "artifact"}
