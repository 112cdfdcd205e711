"""Browsing for the file of a setting, on real folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from needle_tui.app import NeedleApp
from needle_tui.screens.browse import BrowseScreen, FileTree, as_typed, folder_of
from needle_tui.widgets.form_field import ValueInput
from needle_tui.widgets.launch_board import LaunchBoard
from tests.ui.reading import Until, screen_text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a data file, a text, a hidden file and a folder."""
    work = tmp_path / "work"
    (work / "sets").mkdir(parents=True)
    (work / "sets" / "tools.jsonl").write_text("{}\n")
    (work / "notes.txt").write_text("x")
    (work / ".hidden.jsonl").write_text("{}\n")
    (work / "evil\x1b]0;x\x07.jsonl").write_text("{}\n")
    monkeypatch.chdir(work)
    return work


async def browsing(app: NeedleApp, pilot: Pilot[int], until: Until, field: str) -> LaunchBoard:
    await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
    board = app.screen.query_one(LaunchBoard)
    board.form.field_widget(field).set_value("")
    board.form.field_widget(field).query_one(ValueInput).focus()
    await pilot.pause()
    await pilot.press("ctrl+o")
    await until(pilot, lambda: isinstance(app.screen, BrowseScreen), "the tree")
    await until(pilot, lambda: app.screen.query_one(FileTree).root.children, "its entries")
    return board


async def test_a_file_is_chosen_by_keys_and_typed_relative(
    cockpit: Callable[..., NeedleApp], until: Until, folder: Path
) -> None:
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        board = await browsing(app, pilot, until, "data")
        tree = app.screen.query_one(FileTree)
        assert [str(child.label) for child in tree.root.children] == ["sets", "evil·]0;x·.jsonl"]
        await pilot.press("down", "enter")
        sets = tree.root.children[0]
        await until(pilot, lambda: sets.children, "the folder's files")
        await pilot.press("down", "enter")
        await until(pilot, lambda: board.form.values["data"] == "sets/tools.jsonl", "the chosen path")


async def test_a_full_stop_shows_every_file(
    cockpit: Callable[..., NeedleApp], until: Until, folder: Path
) -> None:
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await browsing(app, pilot, until, "data")
        await pilot.press("full_stop")
        await until(pilot, lambda: "notes.txt" in screen_text(app), "the text file")
        assert ".hidden.jsonl" in screen_text(app)


async def test_a_folder_is_taken_with_s_and_escape_changes_nothing(
    cockpit: Callable[..., NeedleApp], until: Until, folder: Path
) -> None:
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        board = await browsing(app, pilot, until, "data")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, BrowseScreen), "closed")
        assert board.form.values["data"] == ""
        board = await browsing(app, pilot, until, "data")
        await pilot.press("down", "s")
        await until(pilot, lambda: board.form.values["data"] == "sets", "the folder")


async def test_backspace_shows_the_folder_above(
    cockpit: Callable[..., NeedleApp], until: Until, folder: Path
) -> None:
    app = cockpit()
    async with app.run_test(size=(100, 30)) as pilot:
        await browsing(app, pilot, until, "data")
        await pilot.press("backspace")
        tree = app.screen.query_one(FileTree)
        await until(pilot, lambda: Path(tree.path) == folder.parent, "the folder above")


def test_browsing_begins_at_the_nearest_folder_there_is(folder: Path) -> None:
    assert folder_of("sets/missing/file.jsonl") == folder / "sets"
    assert folder_of("") == folder


def test_a_path_is_spelled_as_a_person_would_type_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert as_typed(folder / "sets") == "sets"
    assert as_typed(folder.parent / "other.jsonl") == "~/other.jsonl"
    assert as_typed(Path("/dev/null")) == "/dev/null"
