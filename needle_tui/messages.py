"""What background work tells the screens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from needle.devices.inventory import Backend, Inventory
    from needle.launch.preflight import FinetuneFacts


class InventoryKnown(Message):
    """What this machine has, as far as is known; `probing` while more is being found out."""

    def __init__(self, inventory: Inventory, *, probing: bool) -> None:
        super().__init__()
        self.inventory = inventory
        self.probing = probing


class BackendKnown(Message):
    """One backend was probed; the others may still be."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self.backend = backend


class FactsFound(Message):
    """What the files that these values name turned out to be."""

    def __init__(self, values: dict[str, str], facts: FinetuneFacts) -> None:
        super().__init__()
        self.values = values
        self.facts = facts


class CommandPasted(Message):
    """A command line of `needle` was pasted into a setting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class RunStarted(Message):
    """A run was started, or resumed, and has a supervisor."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory


class ActionDone(Message):
    """Something asked for was done; the text is for a person."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class ActionFailed(Message):
    """Something asked for could not be done; the text is for a person."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
