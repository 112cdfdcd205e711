"""Where the trained adapter goes, and never over somebody else's file."""

from __future__ import annotations

import os
from pathlib import Path

from needle.config import FinetuneSettings
from needle.data.locate import ADAPTER_SUFFIXES
from needle.errors import InputError, RunError
from needle.model.adapters import AdapterFile, save_adapter
from needle.runs.events import parse_events
from needle.runs.record import RunFiles

DEFAULT_NAME, BEST_NAME, LAST_NAME = (
    "adapter.safetensors",
    "adapter-best.safetensors",
    "adapter-last.safetensors",
)


def adapter_path(settings: FinetuneSettings, files: RunFiles, attempt: int = 1) -> Path:
    """The file that `out` names, else one in the run directory. Raises InputError when it is taken.

    A file that an earlier attempt of this run wrote is its own to replace. A resumed run cannot choose
    another name, so it goes on: `write_adapter` finds a place for its result.
    """
    if not settings.out:
        return files.artifacts / DEFAULT_NAME
    path = Path(os.path.abspath(Path(settings.out).expanduser()))
    if path.suffix not in ADAPTER_SUFFIXES:
        raise InputError("an adapter file ends in .safetensors or .pkl", where=settings.out, field="out")
    if attempt == 1 and is_taken(path, settings, files):
        raise InputError(
            "already exists", where=settings.out, remedy="choose another --out, or --overwrite", field="out"
        )
    return path


def write_adapter(
    path: Path, adapter: AdapterFile, settings: FinetuneSettings, files: RunFiles
) -> tuple[Path, str]:
    """Write the result where it was asked for. Returns where it is and, if that is elsewhere, why.

    A place that was taken during the run, or cannot be written any more, must not cost the training: the
    run directory takes it then. Raises RunError when that fails too.
    """
    fallback = files.artifacts / DEFAULT_NAME
    try:
        if is_taken(path, settings, files):
            raise RunError("appeared during the run and is left alone", where=settings.out)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_adapter(path, adapter)
    except (OSError, RunError) as error:
        if path == fallback:
            raise
        save_adapter(fallback, adapter)
        problem = str(error).splitlines()[0]
        return fallback, f"{problem}; the adapter is in the run directory: {files.recorded(fallback)}"
    return path, ""


def is_taken(path: Path, settings: FinetuneSettings, files: RunFiles) -> bool:
    """Whether a file is there that this run has no right to replace; the run directory is its own."""
    if not settings.out or settings.overwrite or not path.exists():
        return False
    return path not in _own_artifacts(files)


def _own_artifacts(files: RunFiles) -> set[Path]:
    try:
        events, _ = parse_events(files.events.read_bytes())
    except OSError:
        return set()
    return {files.located(str(event.get("path"))) for event in events if event["kind"] == "artifact"}
