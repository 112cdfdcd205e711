"""What is sent to the terminal when a little of the screen changes."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from textual._compositor import ChopsUpdate
from textual.content import Content
from textual.strip import Strip

from needle_tui.narrow_update import narrowed
from needle_tui.widgets.lines import changed_runs

WORDS = st.text(alphabet="ab ", max_size=30)


def test_a_changed_cell_is_sent_without_the_rest_of_its_line() -> None:
    line = Strip([Segment("a" * 60 + "X" + "b" * 19)])
    update = narrowed(ChopsUpdate([{0: line}], [(0, 60, 61)], [[80]]))
    assert isinstance(update, ChopsUpdate)
    assert update.render_segments(Console()) == "\x1b[1;61HX"


def test_a_change_across_two_widgets_is_sent_as_two_pieces() -> None:
    chops = [{0: Strip([Segment("left ")]), 5: Strip([Segment("right")])}]
    update = narrowed(ChopsUpdate(chops, [(0, 3, 7)], [[5, 10]]))
    assert isinstance(update, ChopsUpdate)
    assert update.render_segments(Console()) == "\x1b[1;4Ht \x1b[1;6Hri"


def test_what_is_no_partial_update_is_left_alone() -> None:
    assert narrowed(None) is None


def test_a_digit_that_changes_is_one_run() -> None:
    assert changed_runs(Content("step 127 of 200"), Content("step 128 of 200"), 20) == [(7, 1)]


def test_a_change_of_colour_alone_is_a_change() -> None:
    before, after = Content.assemble(("ok", "$success")), Content.assemble(("ok", "$error"))
    assert changed_runs(before, after, 10) == [(0, 2)]


def test_a_line_with_wide_characters_is_sent_whole() -> None:
    assert changed_runs(Content("日本"), Content("日本語"), 10) == [(0, 10)]


@given(WORDS, WORDS)
def test_sending_the_runs_makes_the_old_line_the_new_one(before: str, after: str) -> None:
    cells = list(before.ljust(30))
    for x, length in changed_runs(Content(before), Content(after), 30):
        cells[x : x + length] = after.ljust(30)[x : x + length]
    assert "".join(cells) == after.ljust(30)
