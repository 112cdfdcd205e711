"""Ticks, limits and labels of axes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle_tui.widgets.chart_axis import (
    Limits,
    nice_step,
    value_labels,
    value_limits,
    value_ticks,
    x_limits,
    x_ticks,
)

FINITE = st.floats(-1e300, 1e300)


def labels(limits: Limits, count: int = 5) -> list[str]:
    return [tick.label for tick in value_ticks(limits, count)]


@pytest.mark.parametrize(
    ("span", "count", "step"),
    [(10, 5, 2), (10, 4, 5), (1, 4, 0.5), (7, 5, 2), (0.03, 5, 0.01), (1000, 4, 500), (9.9, 10, 1)],
)
def test_steps_are_one_two_or_five_times_a_power_of_ten(span: float, count: int, step: float) -> None:
    assert nice_step(span, count) == pytest.approx(step)


def test_limits_rest_on_ticks_and_so_hold_still_while_values_move_a_little() -> None:
    assert value_limits(0.31, 2.43, log=False, ticks=5) == value_limits(0.12, 2.05, log=False, ticks=5)
    limits = value_limits(0.31, 2.43, log=False, ticks=5)
    assert (limits.low, limits.high) == (0.0, 2.5)


def test_labels_of_one_axis_have_the_same_decimals() -> None:
    assert labels(Limits(0.0, 2.5), 6) == ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]
    assert labels(Limits(0.0, 2e-5), 3) == ["0", "1e-5", "2e-5"]
    assert labels(Limits(0.0, 4e7), 3) == ["0", "2e7", "4e7"]


def test_zero_has_no_sign() -> None:
    assert "-0.0" not in value_labels([-0.5, -0.0, 0.5], 0.5)


def test_log_ticks_are_decades_when_there_are_many_and_1_2_5_when_there_are_few() -> None:
    assert labels(Limits(-3.0, 2.0, log=True)) == ["0.01", "1", "100"]
    assert labels(Limits(-4.0, 0.0, log=True)) == ["0.0001", "0.001", "0.01", "0.1", "1"]
    assert labels(value_limits(math.log10(0.3), math.log10(2.2), log=True, ticks=5)) == [
        "0.2", "0.5", "1", "2", "5",
    ]  # fmt: skip


def test_a_constant_gets_room_above_and_below() -> None:
    for value in (0.0, 3.0, -3.0, 1e300, 5e-324):
        limits = value_limits(value, value, log=False, ticks=4)
        assert limits.low < value < limits.high


def test_x_leaves_room_for_the_next_points_but_none_past_the_end() -> None:
    assert x_limits(1, 137, kind="count").high == 140
    assert x_limits(1, 137, kind="count", end=138).high == 138
    assert x_limits(1, 140, kind="count", end=140).high == 140


def test_x_starts_at_zero_unless_the_points_start_far_from_it() -> None:
    assert x_limits(1, 100, kind="count").low == 0
    assert x_limits(90, 100, kind="count").low == 90


def test_steps_are_whole_numbers_and_large_ones_are_short() -> None:
    assert [tick.label for tick in x_ticks(Limits(0, 3), 8, "count")] == ["0", "1", "2", "3"]
    assert [tick.label for tick in x_ticks(Limits(0, 1200), 3, "count")] == ["0", "500", "1,000"]
    assert [tick.label for tick in x_ticks(Limits(0, 3e6), 3, "count")] == ["0", "1 M", "2 M", "3 M"]
    assert [tick.label for tick in x_ticks(Limits(0, 2e9), 4, "count")] == [
        "0", "0.5 B", "1.0 B", "1.5 B", "2.0 B",
    ]  # fmt: skip


def test_time_ticks_are_what_people_count_in() -> None:
    assert [tick.label for tick in x_ticks(Limits(0, 100), 4, "time")] == ["0s", "30s", "1m", "1m 30s"]
    assert [tick.label for tick in x_ticks(Limits(0, 5400), 4, "time")] == ["0s", "30m", "1h", "1h 30m"]
    assert [tick.label for tick in x_ticks(Limits(0, 3 * 86400), 4, "time")] == ["0s", "1d", "2d", "3d"]
    assert [tick.label for tick in x_ticks(Limits(0, 1), 2, "time")] == ["0.0", "0.5", "1.0"]


@given(FINITE, FINITE, st.integers(2, 12))
def test_any_two_values_give_limits_around_them_and_few_ticks_within(a: float, b: float, count: int) -> None:
    low, high = min(a, b), max(a, b)
    limits = value_limits(low, high, log=False, ticks=count)
    assert limits.low < limits.high
    room = 1e-9 * max(abs(low), abs(high), 1e-290)
    assert limits.low <= low + room
    assert limits.high >= high - room
    ticks = value_ticks(limits, count + 1)
    assert len(ticks) <= count + 3
    assert all(limits.low - room <= tick.at <= limits.high + room for tick in ticks)


@given(st.floats(-320, 308), st.floats(-320, 308), st.integers(2, 12))
def test_any_two_logarithms_give_limits_around_them_and_few_ticks(a: float, b: float, count: int) -> None:
    limits = value_limits(min(a, b), max(a, b), log=True, ticks=count)
    assert limits.low <= min(a, b) < max(a, b) <= limits.high or a == b
    assert 1 <= len(value_ticks(limits, count)) <= 3 * count + 3


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.sampled_from(["count", "time"]), st.integers(2, 20))
def test_any_window_has_few_x_ticks(low: float, span: float, kind: str, count: int) -> None:
    limits = x_limits(low, low + span, kind=kind)  # type: ignore[arg-type]
    assert limits.low < limits.high
    assert len(x_ticks(limits, count, kind)) <= count + 2  # type: ignore[arg-type]
