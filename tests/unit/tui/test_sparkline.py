"""Sparklines as text."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from needle_tui.widgets.glyphs import ASCII, BRAILLE
from needle_tui.widgets.sparkline import sparkline_text


def test_a_rising_line_climbs_through_all_levels() -> None:
    assert sparkline_text(range(8), 8, BRAILLE) == "▁▂▃▄▅▆▇█"
    assert sparkline_text(range(6), 6, ASCII) == "_.-=*#"


def test_a_spike_of_one_point_among_thousands_is_seen() -> None:
    values = [1.0] * 5000
    values[2600] = 9.0
    assert sparkline_text(values, 10, BRAILLE) == "▁▁▁▁▁█▁▁▁▁"


def test_a_dip_of_one_point_among_thousands_is_seen() -> None:
    values = [5.5] * 5000
    values[0], values[2600] = 9.0, 1.0
    assert sparkline_text(values, 10, BRAILLE) == "█▅▅▅▅▁▅▅▅▅"


def test_few_values_take_one_cell_each_and_the_rest_stays_empty() -> None:
    assert sparkline_text([3.0, 1.0], 6, BRAILLE) == "█▁    "


def test_cells_without_a_finite_value_are_marked() -> None:
    assert sparkline_text([1.0, math.nan, 2.0], 3, BRAILLE) == "▁×█"
    assert sparkline_text([math.inf], 2, ASCII) == "x "


def test_a_constant_lies_in_the_middle() -> None:
    assert sparkline_text([2.0, 2.0], 2, BRAILLE) == "▄▄"


@given(st.lists(st.floats()), st.integers(0, 40))
def test_any_numbers_give_a_text_of_the_width_asked_for(values: list[float], width: int) -> None:
    assert len(sparkline_text(values, width, BRAILLE)) == width
