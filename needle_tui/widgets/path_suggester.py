"""Completing a path as it is typed: → takes the suggestion."""

from __future__ import annotations

import asyncio
import os

from textual.suggester import Suggester

_MOST_ENTRIES = 2000


class PathSuggester(Suggester):
    """Suggests the first entry, by name, that the typed path is the beginning of; a folder ends with `/`."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """The whole path, as it was begun; None without one."""
        return await asyncio.to_thread(completed, value) if value else None


def completed(typed: str) -> str | None:
    """The typed path with the rest of the first entry that fits; hidden ones only when asked for by a dot."""
    folder, _, beginning = typed.rpartition("/")
    place = os.path.expanduser(folder or ("/" if typed.startswith("/") else "."))
    try:
        with os.scandir(place) as entries:
            names = [
                entry.name + ("/" if entry.is_dir() else "")
                for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False)
                if entry.name.startswith(beginning) and (beginning or not entry.name.startswith("."))
            ]
    except OSError:
        return None
    return typed + min(names)[len(beginning) :] if names else None
