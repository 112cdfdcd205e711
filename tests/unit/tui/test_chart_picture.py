"""Charts as pictures, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from needle_tui.widgets import chart_look as look
from needle_tui.widgets.chart_look import tagged_look
from needle_tui.widgets.chart_model import ChartModel
from needle_tui.widgets.chart_picture import Picture, Row, Span, changed_spans, row, runs
from needle_tui.widgets.glyphs import GLYPH_SETS, GlyphName, choose_glyphs

FLOATS = arrays.arrays(np.float64, st.integers(0, 60), elements=st.floats())


def chart(glyph_set: GlyphName = "braille", x_kind: str = "count") -> ChartModel:
    return ChartModel("loss", "step", x_kind, GLYPH_SETS[glyph_set], "no points yet")  # type: ignore[arg-type]


def lines(model: ChartModel, width: int = 30, height: int = 10) -> list[str]:
    return model.draw(width, height).text().split("\n")


def test_a_ramp_in_braille() -> None:
    model = chart()
    model.append("a", np.arange(11), np.arange(11.0))
    assert lines(model) == [
        "loss              ── a   10.00",
        "     10┤                   ⣠⠴⠋",
        "       │               ⢀⣠⠴⠋⠁",
        "       │            ⢀⡤⠞⠉",
        "      5┤         ⣀⡤⠞⠉",
        "       │      ⣀⡴⠚⠁",
        "       │  ⢀⣠⠖⠋⠁",
        "      0┤⣠⠖⠋",
        "       └┴──────────┴─────────┴",
        "step    0          5        10",
    ]


def test_a_ramp_in_blocks() -> None:
    model = chart("block")
    model.append("a", np.arange(11), np.arange(11.0))
    assert lines(model)[1:8] == [
        "     10┤                   ▄▟▀",
        "       │                ▄▟▀▘",
        "       │            ▗▄▛▀▘",
        "      5┤         ▄▄▛▀",
        "       │     ▗▄▟▀▘",
        "       │  ▗▄▛▀",
        "      0┤▄▛▀",
    ]


def test_a_ramp_in_ascii_uses_nothing_but_ascii() -> None:
    model = chart("ascii")
    model.append("a", np.arange(11), np.arange(11.0))
    assert lines(model) == [
        "loss              -- a   10.00",
        "     10+                  .||'",
        "       |                ||'",
        "       |            ..|''",
        "      5+         .|-|",
        "       |     ..|''",
        "       |   |-|",
        "      0+.|''",
        "       ++----------+---------+",
        "step    0          5        10",
    ]
    assert model.draw(60, 20).text().isascii()


def test_a_spike_of_one_point_in_a_hundred_thousand_stands_at_full_height() -> None:
    values = np.zeros(100_000)
    values[50_000] = 1.0
    model = chart()
    model.append("a", np.arange(100_000), values)
    assert [line[7:20] for line in lines(model)[1:8]] == [
        "┤           ⡇",
        "│           ⡇",
        "│           ⡇",
        "┤           ⡇",
        "│           ⡇",
        "│           ⡇",
        "┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣇",
    ]


def test_a_non_finite_point_is_a_gap_a_mark_and_a_count() -> None:
    model = chart()
    model.append("a", [0, 10, 20, 30, 40], [1.0, 2.0, np.nan, 3.0, 4.0])
    assert lines(model, width=40) == [
        "loss  1 non-finite          ── a  4.0000",
        "      4┤                           ⣀⡤⠴⠒⠋",
        "       │                        ⠴⠚⠉⠁",
        "       │",
        "      2┤  ⢀⣀⡤⠖⠚⠉⠁",
        "       │⠒⠋⠉",
        "      0┤",
        "non-fin.                ×",
        "       └┴───────────────┴──────────────┴",
        "step    0              20             40",
    ]


def test_bounds_come_from_finite_points_alone() -> None:
    model = chart()
    model.append("a", [0, 1, 2, 3], [1.0, np.inf, -np.inf, 2.0])
    assert [line[:7].strip() for line in lines(model)[1:7]] == ["2.0", "", "", "1.5", "", "1.0"]


def test_a_log_axis_marks_what_it_cannot_show() -> None:
    model = chart()
    model.log_scale = True
    model.append("a", [0, 10, 20, 30, 40], [100.0, 10.0, 0.0, -3.0, 0.1])
    picture = lines(model, width=60)
    assert picture[0].startswith("loss  log  2 not above 0")
    assert picture[7].split() == ["<=", "0", "▾", "▾"]
    assert [line[:7].strip() for line in picture[1:7]] == ["100", "", "", "1", "", ""]


def test_a_constant_is_a_line_in_the_middle() -> None:
    model = chart()
    model.append("a", [0, 10, 20], [3.0, 3.0, 3.0])
    assert set(lines(model)[4][8:]) <= set("⠤⠦⠴")
    assert lines(model)[4].startswith("    3.0┤")


def test_one_point_is_a_dot() -> None:
    model = chart()
    model.append("a", 5, 2.0)
    assert sum(character in "⠁⠂⠄⡀⠈⠐⠠⢀" for line in lines(model) for character in line) == 1


def test_train_and_validation_differ_without_colour() -> None:
    model = chart()
    model.append("train", np.arange(100), np.full(100, 1.0))
    model.append("val", [20, 40, 60, 80], [2.0] * 4)
    picture = lines(model, width=60)
    assert picture[0].split()[1:] == ["──", "train", "1.0000", "●─", "val", "2.0000"]
    assert picture[1].count("●") == 4
    assert "●" not in "".join(picture[2:])
    assert set(picture[7][8:-1]) == {"⣀"}


def test_eight_series_each_carry_their_number() -> None:
    model = chart("ascii")
    for index in range(8):
        model.set_series(f"run {index}", np.arange(100), np.full(100, float(index)), None, tagged_look(index))
    picture = lines(model, width=120, height=30)
    for number in "12345678":
        plot = [line[8:] for line in picture[1:-2]]
        assert len([line for line in plot if number in line]) == 1


def test_where_lines_cross_the_later_one_stays_clean() -> None:
    model = chart()
    model.append("a", [0, 100], [0.0, 1.0])
    model.append("b", [0, 100], [0.5, 0.5])
    picture = model.draw(60, 20)
    crossing = [one for one in picture.rows[1:] if "2" in one.styles and "1" in one.styles]
    assert crossing
    for text, style in (piece for one in crossing for piece in runs(one)):
        assert style != "2" or set(text) <= set("⠁⠂⠄⡀⠈⠐⠠⢀● ⠉⠒⠤⣀")


def test_a_resume_is_a_line_with_its_word() -> None:
    model = chart()
    model.append("a", np.arange(100), np.linspace(1, 0, 100))
    model.set_marks([(50.0, "resumed")])
    picture = model.draw(60, 12)
    assert "┊resumed" in picture.rows[1].text
    assert sum("┊" in one.text for one in picture.rows) >= 7


def test_smoothing_draws_the_average_as_the_line_and_the_points_behind_it() -> None:
    model = chart()
    noisy = np.where(np.arange(1000) % 2, 1.0, 3.0)
    model.append("a", np.arange(1000), noisy)
    model.smoothing = 0.99
    picture = model.draw(60, 20)
    plot = picture.rows[1:-2]
    assert sum("1" in one.styles[34:] for one in plot) == 1
    assert sum(look.RAW in one.styles for one in plot) == 2
    assert "smooth 0.99" in picture.rows[0].text
    assert "a  1.0000 ~1.9950" in picture.rows[0].text


def test_labels_keep_their_width_as_values_grow() -> None:
    model = chart()
    places = set()
    for power in range(-4, 5):
        model.clear()
        model.append("a", np.arange(10), 10.0**power * np.arange(1.0, 11.0))
        places.add(lines(model)[2].index("│"))
    assert places == {7}


def test_the_cursor_reads_the_point_it_stands_on() -> None:
    model = chart()
    model.append("a", np.arange(100), np.linspace(1, 0, 100))
    model.cursor = 50.0
    picture = model.draw(60, 12)
    assert picture.rows[0].text.rstrip().endswith("a  0.4949 @50")
    assert sum("◆" in one.text for one in picture.rows) == 1


def test_small_sizes_leave_out_what_does_not_fit_and_nothing_is_cut_in_half() -> None:
    model = chart()
    model.append("train", np.arange(100), np.linspace(1, 0, 100))
    model.append("validation", [50], [0.5])
    assert lines(model, 60, 3)[0].split() == ["loss", "──", "train", "0", "●─", "validation", "0.5000"]
    assert lines(model, 40, 3)[0].split() == ["loss", "──", "0", "●─", "0.5000"]
    assert lines(model, 24, 3)[0].split() == ["──", "0", "●─", "0.5000"]
    assert lines(model, 12, 3)[0].split() == ["──", "0"]
    for width in range(1, 70):
        for height in range(1, 14):
            picture = model.draw(width, height)
            assert len(picture.rows) == height
            assert all(len(one.text) == len(one.styles) == width for one in picture.rows)


def test_without_points_it_says_so_under_its_title() -> None:
    assert [line.strip() for line in lines(chart(), 30, 3)] == ["loss", "no points yet", ""]


@settings(deadline=None)
@given(
    FLOATS,
    FLOATS,
    st.booleans(),
    st.sampled_from([0.0, 0.9]),
    st.sampled_from(["braille", "block", "ascii"]),
    st.sampled_from(["count", "time"]),
    st.lists(st.sampled_from(["in", "out", "left", "right", "cursor", "back", "reset"]), max_size=6),
)
@example(np.array([]), np.array([5e-324]), True, 0.0, "braille", "count", [])
def test_any_numbers_give_a_whole_picture(
    x: np.ndarray,
    y: np.ndarray,
    log: bool,
    smoothing: float,
    glyph_set: GlyphName,
    x_kind: str,
    moves: list[str],
) -> None:
    model = chart(glyph_set, x_kind)
    model.smoothing, model.log_scale = smoothing, log
    model.append("a", x, y)
    model.append("b", np.arange(len(y)), y)
    model.set_marks([(float(one), "m") for one in x[:2]])
    moving = {
        "in": lambda: model.zoom(2),
        "out": lambda: model.zoom(0.5),
        "left": lambda: model.pan(-0.5),
        "right": lambda: model.pan(0.5),
        "cursor": lambda: model.move_cursor(-3),
        "back": lambda: model.move_cursor(3),
        "reset": model.reset,
    }
    for move in ["", *moves]:
        moving.get(move, lambda: None)()
        picture = model.draw(40, 12)
        assert len(picture.rows) == 12
        assert all(len(one.text) == len(one.styles) == 40 for one in picture.rows)


@pytest.mark.filterwarnings("error")
def test_a_window_after_a_vast_number_is_drawn() -> None:
    model = chart()
    model.smoothing = 0.9
    model.append("a", np.arange(100), [1e120, *([3e-187] * 99)])
    model.zoom(8)
    model.move_cursor(0)
    assert len(model.draw(40, 12).rows) == 12


@pytest.mark.filterwarnings("error")
def test_hard_numbers_draw_without_a_warning() -> None:
    for values in ([np.nan] * 3, [np.inf, -np.inf, 0], [1e308, -1e308, 5e-324], [-1, -2, -3], [0, 0, 0]):
        for log in (False, True):
            model = chart()
            model.log_scale, model.smoothing = log, 0.9
            model.append("a", [0, 1, 2], values)
            assert len(model.draw(40, 12).rows) == 12


def test_only_changed_cells_differ_and_near_ones_are_one_span() -> None:
    old = Picture(40, (Row("a" * 40, "t" * 40), row("same", "t", 40)))
    new = Picture(40, (Row("ab" + "a" * 3 + "b" + "a" * 33 + "b", "t" * 40), row("same", "t", 40)))
    assert changed_spans(old, new) == [Span(1, 0, 5), Span(39, 0, 1)]
    assert changed_spans(new, new) == []


def test_a_change_of_style_alone_is_a_change() -> None:
    old, new = Picture(3, (Row("abc", "ttt"),)), Picture(3, (Row("abc", "tbt"),))
    assert changed_spans(old, new) == [Span(1, 0, 1)]


@pytest.mark.parametrize(
    ("environment", "encoding", "chosen"),
    [
        ({"TERM": "xterm-256color"}, "UTF-8", "braille"),
        ({"TERM": "linux"}, "UTF-8", "ascii"),
        ({"TERM": "xterm"}, "ANSI_X3.4-1968", "ascii"),
        ({"TERM": "dumb"}, "utf8", "ascii"),
        ({"TERM": "linux", "NEEDLE_GLYPHS": "block"}, "UTF-8", "block"),
        ({"TERM": "xterm", "NEEDLE_GLYPHS": "nonsense"}, "UTF-8", "braille"),
    ],
)
def test_glyphs_suit_the_terminal_unless_asked_otherwise(
    environment: dict[str, str], encoding: str, chosen: str
) -> None:
    assert choose_glyphs(environment, encoding) == chosen


def test_every_character_of_every_glyph_set_is_one_cell_wide() -> None:
    from rich.cells import cell_len

    for one in GLYPH_SETS.values():
        assert all(cell_len(character) == 1 for character in one.cells + one.levels)
        assert len(one.cells) == 2 ** (one.dot_columns * one.dot_rows)
