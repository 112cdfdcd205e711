"""Choosing a file or a folder for a setting."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import DirectoryTree
from textual.widgets._directory_tree import DirEntry
from textual.widgets.tree import TreeNode

from needle_tui.marks import marks
from needle_tui.text import inert
from needle_tui.theme import style_sheet
from needle_tui.widgets.key_bar import key_items
from needle_tui.widgets.lines import Lines

SUFFIXES: dict[str, tuple[str, ...]] = {
    "data": (".jsonl", ".json", ".ndjson"),
    "checkpoint": (".safetensors", ".pkl"),
    "tokenizer": (".model",),
    "out": (".safetensors", ".pkl"),
}
"""What the file of a setting ends in; other settings take any."""


class FileTree(DirectoryTree):
    """Folders and the files that a setting can use; `all_files` shows the others and the hidden ones too."""

    DEFAULT_CSS = """
    FileTree { height: 1fr; background: $surface; padding: 0; }
    FileTree:focus { background-tint: $foreground 0%; }
    """

    def __init__(self, folder: Path, suffixes: tuple[str, ...]) -> None:
        self.all_files = False
        self._suffixes = suffixes
        self.ICON_NODE, self.ICON_NODE_EXPANDED = f"{marks().after} ", f"{marks().focus} "
        self.ICON_FILE = "  "
        super().__init__(folder)
        self.guide_depth = 2
        self.show_guides = False

    def process_label(self, label: str | Text) -> Text:
        """File names come from outside."""
        return Text(inert(str(label)))

    def filter_paths(self, paths: Iterable[Path]) -> Iterable[Path]:
        """Leave out what is hidden or of another kind."""
        return paths if self.all_files else [path for path in paths if self._is_wanted(path)]

    def _is_wanted(self, path: Path) -> bool:
        if path.name.startswith("."):
            return False
        try:
            return not self._suffixes or path.suffix in self._suffixes or path.is_dir()
        except OSError:
            return False


class BrowseHelp(Lines):
    """The folder that is shown, and the keys."""

    def __init__(self, tree: FileTree) -> None:
        super().__init__()
        self._tree = tree

    def lines(self, width: int) -> list[Content]:
        """Two lines."""
        keys = (
            ("Enter", "Open, take a file"),
            ("s", "Take it"),
            ("Bksp", "Up"),
            (".", "Fewer" if self._tree.all_files else "All files"),
            ("Esc", "Close"),
        )
        return [key_items(keys)]


class BrowseScreen(ModalScreen[str]):
    """A tree of files over the form; the result is the chosen path, shortest as a person would type it."""

    CSS_PATH = style_sheet("dialog")
    AUTO_FOCUS = "FileTree"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "take", "Take what is marked"),
        Binding("backspace,left", "up", "The folder above"),
        Binding("full_stop", "all_files", "All files, hidden ones too"),
        Binding("escape,q", "dismiss('')", "Close"),
    ]

    def __init__(self, setting: str, label: str, value: str) -> None:
        super().__init__()
        self._label = label
        self._tree = FileTree(folder_of(value), SUFFIXES.get(setting, ()))

    def compose(self) -> ComposeResult:
        """The tree and its keys."""
        with Vertical(classes="dialog browse") as dialog:
            dialog.border_title = Content(f"Choose: {inert(self._label)}")
            yield self._tree
            yield BrowseHelp(self._tree)

    def on_directory_tree_file_selected(self, event: DirectoryTree.FileSelected) -> None:
        """A file ends the choice; Enter on a folder opens it."""
        event.stop()
        self.dismiss(as_typed(event.path))

    def action_take(self) -> None:
        """Take the file or folder under the cursor."""
        node: TreeNode[DirEntry] | None = self._tree.cursor_node or self._tree.root
        if node is not None and node.data is not None:
            self.dismiss(as_typed(node.data.path))

    def action_up(self) -> None:
        """Show the folder above as the root."""
        self._tree.path = Path(self._tree.path).absolute().parent

    async def action_all_files(self) -> None:
        """Show everything, or only what the setting can use."""
        self._tree.all_files = not self._tree.all_files
        await self._tree.reload()
        self.query_one(BrowseHelp).update_lines()


def folder_of(value: str) -> Path:
    """Where to begin: the nearest folder there is of what the setting says, else the current one."""
    path = Path(value).expanduser().absolute() if value else Path.cwd()
    return next((one for one in (path, *path.parents) if one.is_dir()), Path("/"))


def as_typed(path: Path) -> str:
    """A path relative to the current folder or to the home folder where it lies below one of them."""
    path = path.absolute()
    if path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    if path.is_relative_to(Path.home()):
        return f"~/{path.relative_to(Path.home())}"
    return str(path)
