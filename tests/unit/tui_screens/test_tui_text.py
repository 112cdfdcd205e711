"""Text from outside is shown inert, and cut without being torn."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from needle_tui.text import between, column, fit, inert, wrapped
from needle_tui.widgets.path_suggester import completed


def test_escape_sequences_are_shown_not_obeyed() -> None:
    assert inert("\x1b[31mred\x07") == "·[31mred·"


def test_line_breaks_and_tabs_become_spaces() -> None:
    assert inert("a\nb\tc\rd") == "a b c d"


def test_direction_marks_cannot_reorder_what_is_read() -> None:
    assert "\u202e" not in inert("abc\u202edef")


def test_undecodable_file_names_can_be_shown() -> None:
    inert("bad\udcff.jsonl").encode("utf-8")


@given(st.text(), st.integers(0, 40))
def test_fit_never_exceeds_its_width(text: str, width: int) -> None:
    assert cell_len(fit(inert(text), width)) <= width


@given(st.text(), st.integers(1, 40))
def test_column_is_exactly_its_width(text: str, width: int) -> None:
    assert cell_len(column(inert(text), width)) == width


@given(st.text(), st.integers(2, 40))
def test_wrapped_lines_fit_and_lose_no_word_characters(text: str, width: int) -> None:
    shown = inert(text)
    lines = wrapped(shown, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(shown.split())


def test_what_stands_at_the_right_yields_first() -> None:
    assert between(Content("left side"), Content("right"), 12).plain == "left side"
    assert between(Content("left"), Content("right"), 12).plain == "left   right"


def test_a_path_is_completed_with_the_first_entry_that_fits(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "train.jsonl").touch()
    (tmp_path / ".hidden").touch()
    assert completed(f"{tmp_path}/tr") == f"{tmp_path}/train.jsonl"
    assert completed(f"{tmp_path}/t") == f"{tmp_path}/tools/"
    assert completed(f"{tmp_path}/") == f"{tmp_path}/tools/"
    assert completed(f"{tmp_path}/.h") == f"{tmp_path}/.hidden"
    assert completed(f"{tmp_path}/nothing") is None
    assert completed("/nowhere/at/all") is None
