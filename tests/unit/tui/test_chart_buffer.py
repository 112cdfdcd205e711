"""The points behind a chart, against the obvious way of doing the same."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from needle_tui.widgets.chart_buffer import Columns, SeriesBuffer
from needle_tui.widgets.chart_pyramid import BLOCK, Pyramid
from needle_tui.widgets.chart_smoothing import Smoother

ANY_FLOATS = arrays.arrays(np.float64, st.integers(0, 300), elements=st.floats())


def filled(x: object, y: object) -> SeriesBuffer:
    made = SeriesBuffer()
    made.extend(x, y)  # type: ignore[arg-type]
    return made


def columns(points: SeriesBuffer, low: float, high: float, count: int, *, log: bool = False) -> Columns:
    return points.columns(low, high, count, log=log, smooth=False)


def test_ranges_are_exact_at_every_length_and_however_points_arrived() -> None:
    random = np.random.default_rng(1)
    for length in (1, BLOCK, BLOCK + 1, BLOCK**2 - 1, BLOCK**2 + 5, 40_000):
        values = random.normal(size=length)
        pyramid = Pyramid()
        for part in np.array_split(values, [1, length // 3, length // 3 + 7]):
            pyramid.extend(part)
        starts = random.integers(0, length, 200)
        stops = np.minimum(length, starts + random.integers(0, length + 1, 200))
        low, high = pyramid.ranges(starts, stops)
        for start, stop, least, most in zip(starts, stops, low, high, strict=True):
            part = values[start:stop]
            assert math.isnan(least) if not len(part) else least == part.min()
            assert math.isnan(most) if not len(part) else most == part.max()


@given(ANY_FLOATS, st.integers(1, 40))
def test_columns_agree_with_going_through_every_point(values: np.ndarray, count: int) -> None:
    x = np.arange(len(values), dtype=float)
    found = columns(filled(x, values), 0.0, max(1.0, len(values) - 1.0), count)
    assert found.count.sum() == len(values)
    assert found.bad.sum() == np.sum(~np.isfinite(values))
    start = 0
    for index in range(count):
        part = values[start : start + found.count[index]]
        start += int(found.count[index])
        good = part[np.isfinite(part)].clip(-1e300, 1e300)
        if len(good):
            assert (found.low[index], found.high[index]) == (good.min(), good.max())
        else:
            assert math.isnan(found.low[index])


def test_a_spike_of_one_point_in_a_million_is_in_its_column() -> None:
    values = np.zeros(1_000_000)
    values[654_321] = 7.0
    found = columns(filled(np.arange(1_000_000), values), 0, 999_999, 100)
    assert np.flatnonzero(found.high == 7.0).tolist() == [65]


def test_points_out_of_order_and_without_a_place_are_put_right() -> None:
    points = filled([3, 1, math.nan, math.inf, 2], [30, 10, 0, 0, 20])
    points.extend([0], [5])
    assert points.x.view.tolist() == [0, 1, 2, 3]
    assert points.y.view.tolist() == [5, 10, 20, 30]


def test_log_columns_hide_what_is_not_above_zero_and_count_it() -> None:
    found = columns(filled([0, 1, 2, 3], [100.0, 0.0, -5.0, math.nan]), 0, 3, 4, log=True)
    assert found.low[0] == pytest.approx(2.0)
    assert found.hidden.tolist() == [0, 1, 1, 0]
    assert found.bad.tolist() == [0, 0, 0, 1]


def test_neighbours_outside_the_window_are_known() -> None:
    found = columns(filled([0, 10, 20, 30], [1.0, 2.0, 3.0, 4.0]), 12, 28, 8)
    assert found.before == (pytest.approx(-0.125), 2.0)
    assert found.after == (pytest.approx(1.125), 4.0)


def test_the_nearest_point_is_read_and_a_step_goes_to_another_one() -> None:
    points = filled([0, 10, 20], [1.0, 2.0, 3.0])
    assert points.reading(13) == (10, 2.0)
    assert points.reading(16) == (20, 3.0)
    assert points.reading(None) == (20, 3.0)
    assert points.stepped(10, 0.1) == 20
    assert points.stepped(10, -0.1) == 0
    assert points.stepped(20, 0.1) == 20


@settings(deadline=None)
@given(ANY_FLOATS, st.sampled_from([0.1, 0.6, 0.9, 0.99, 0.9999]), st.integers(0, 300))
def test_smoothing_agrees_with_the_plain_recursion_however_points_arrive(
    values: np.ndarray, smoothing: float, cut: int
) -> None:
    smoother = Smoother(smoothing)
    found = np.concatenate([smoother.extend(values[:cut]), smoother.extend(values[cut:])])
    total = weight = largest = 0.0
    for value, drawn, average in zip(values, values.clip(-1e300, 1e300), found, strict=True):
        finite = math.isfinite(value)
        total = smoothing * total + (1 - smoothing) * (drawn if finite else 0.0)
        weight = smoothing * weight + (1 - smoothing) * finite
        largest = max(largest, abs(drawn) if finite else 0.0)
        if finite:
            assert average == pytest.approx(total / weight, rel=1e-6, abs=1e-9 * largest)
        else:
            assert math.isnan(average)


def test_smoothed_points_follow_appended_ones() -> None:
    whole, grown = SeriesBuffer(), SeriesBuffer()
    values = np.random.default_rng(2).normal(size=1000)
    for points in (whole, grown):
        points.set_smoothing(0.9)
    whole.extend(np.arange(1000), values)
    for start in range(0, 1000, 37):
        grown.extend(np.arange(1000)[start : start + 37], values[start : start + 37])
    np.testing.assert_allclose(whole.smoothed(), grown.smoothed(), rtol=1e-9)


def test_a_million_points_cost_what_a_thousand_do() -> None:
    def fastest_s(points: SeriesBuffer) -> float:
        high = points.last_x
        times = []
        for _ in range(15):
            start = perf_counter()
            columns(points, high * 0.1, high * 0.9, 200)
            times.append(perf_counter() - start)
        return min(times)

    random = np.random.default_rng(3)
    few, many = (filled(np.arange(n), random.normal(size=n)) for n in (10_000, 1_000_000))
    columns(few, 0, 1, 1), columns(many, 0, 1, 1)
    assert fastest_s(many) < 4 * fastest_s(few)
