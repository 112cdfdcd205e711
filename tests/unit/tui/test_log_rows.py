"""A log as rows: cutting, wrapping, scrolling, searching, without a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from needle_tui.widgets import log_rows
from needle_tui.widgets.log_model import LogModel
from needle_tui.widgets.log_rows import NOTHING_FOUND, Frame, Place


@dataclass
class Log:
    """Lines as a log tail hands them over."""

    lines: list[str]
    appended: int
    generation: int = 0


def numbered(count: int, first: int = 0) -> Log:
    return Log([f"line {number}" for number in range(first, count)], count)


def model(log: Log) -> LogModel:
    made = LogModel("no output yet", "…")
    made.show(log)
    return made


def text(made: LogModel, width: int = 30, height: int = 4) -> list[str]:
    return made.draw(width, height).text().split("\n")


def test_the_newest_lines_are_in_sight() -> None:
    assert text(model(numbered(100))) == ["line 96", "line 97", "line 98", "line 99"]


def test_a_short_log_starts_at_the_top() -> None:
    assert text(model(numbered(2))) == ["line 0", "line 1", "", ""]


def test_without_lines_it_says_so() -> None:
    assert text(model(numbered(0)))[0] == "no output yet"


def test_scrolled_back_the_text_stands_still_and_newer_lines_are_counted() -> None:
    made = model(numbered(100))
    text(made)
    made.scroll(-10)
    before = text(made)
    assert before == ["line 86", "line 87", "line 88", "End follows"]
    made.show(numbered(150, first=120))
    assert text(made)[:3] == before[:3]
    assert text(made)[3] == "50 newer lines, End follows"


def test_scrolling_down_to_the_newest_line_follows_again() -> None:
    made = model(numbered(100))
    text(made)
    made.scroll(-2)
    assert made.top is not None
    made.scroll(5)
    made.show(numbered(101))
    assert text(made)[-1] == "line 100"


def test_reading_on_below_the_held_lines_misses_none() -> None:
    made = model(numbered(100))
    text(made, height=11)
    made.scroll(-5)
    made.show(numbered(130, first=30))
    seen = set(text(made, height=11))
    for _ in range(40):
        made.scroll(1)
        seen.update(text(made, height=11))
    assert {f"line {number}" for number in range(90, 130)} <= seen


def test_another_log_is_shown_from_its_end_even_when_scrolled_back() -> None:
    made = model(numbered(100))
    text(made)
    made.scroll(-10)
    made.show(Log(["fresh"], 1, generation=1))
    assert text(made)[0] == "fresh"


def test_a_long_line_is_cut_with_a_mark() -> None:
    made = model(Log(["x" * 100], 1))
    assert text(made, width=10)[0] == "x" * 9 + "…"


def test_a_long_line_wraps_when_asked() -> None:
    made = model(Log(["abcdefghij" * 2 + "end"], 1))
    made.set_wrap(True)
    assert text(made, width=10, height=4) == ["abcdefghij", "abcdefghij", "end", ""]


def test_wide_characters_are_never_cut_in_half() -> None:
    for width in range(1, 12):
        for wrap in (False, True):
            rows = log_rows.rows_from(["a漢字かな漢字"], Place(0), Frame(width, 20, wrap), NOTHING_FOUND)
            assert all(len(row.text) == len(row.styles) == width for row in rows)
            assert not any(row.text.startswith("\0") for row in rows if width > 1)


def test_control_characters_are_shown_and_do_nothing() -> None:
    assert "\x1b" not in text(model(Log(["\x1b[31mred\x07"], 1)))[0]


def test_a_search_goes_to_the_last_line_found_and_round_the_ends() -> None:
    made = model(numbered(200))
    text(made)
    made.find("LINE 1")
    assert made.found.lines[:2] == (1, 10)
    assert made.found.line == 199
    assert "line 199" in text(made)
    made.find_next(1)
    assert made.found.line == 1
    assert "line 1" in text(made)
    made.find_next(-1)
    assert made.found.line == 199


def test_what_is_found_is_marked_apart_from_the_other_finds() -> None:
    made = model(Log(["a needle", "hay", "needle needle"], 3))
    made.find("needle")
    picture = made.draw(20, 4)
    assert picture.rows[0].styles.startswith("ttmmmmmm")
    assert picture.rows[2].styles.startswith("cccccctcccccc")


def test_a_search_for_text_without_width_ends() -> None:
    made = model(Log(["a\u0301b"], 1))
    made.find("\u0301")
    assert text(made)[0] == "ab"


def test_a_search_without_a_find_says_so_and_stays() -> None:
    made = model(numbered(100))
    before = text(made)
    made.typed = "nowhere"
    made.find("nowhere")
    assert text(made)[:3] == before[1:]
    assert "not found" in text(made)[3]


@given(
    st.lists(st.text(max_size=60), max_size=20),
    st.integers(1, 20),
    st.integers(1, 10),
    st.booleans(),
    st.lists(st.integers(-30, 30), max_size=8),
)
def test_any_text_in_any_size_gives_whole_rows(
    lines: list[str], width: int, height: int, wrap: bool, scrolls: list[int]
) -> None:
    made = model(Log(lines, len(lines)))
    made.draw(width, height)
    made.set_wrap(wrap)
    made.find(lines[0][:2] if lines else "x")
    for by in scrolls:
        made.scroll(by)
        picture = made.draw(width, height)
        assert len(picture.rows) == height
        assert all(len(row.text) == len(row.styles) == width for row in picture.rows)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 9), st.integers(0, 40))
def test_moving_down_and_up_again_returns(lengths: list[int], width: int, by: int) -> None:
    lines = ["x" * length for length in lengths]
    frame = Frame(width, 5, wrap=True)
    there = log_rows.moved(lines, Place(0), by, frame)
    rows = sum(len(log_rows._pieces(line, frame)) for line in lines)
    assert log_rows.moved(lines, there, -min(by, rows), frame) == Place(0)
