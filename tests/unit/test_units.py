"""Numbers as people say them."""

import math

import pytest

from needle.units import age_text, bytes_text, count_text, duration_text, number_text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (20_497_743_674, "19.1 GiB"), (150 * 2**30, "150 GiB")],
)
def test_bytes(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (math.inf, "-"),
        (-1, "0s"),
        (59.4, "59s"),
        (252, "4m 12s"),
        (7260, "2h 01m"),
        (90000, "1d 01h"),
    ],
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(3, "just now"), (300, "5 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")]
)
def test_ages(seconds, text):
    assert age_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(212, "212"), (1234, "1,234"), (45_123_456, "45.1 M"), (1e10, "10.0 B")]
)
def test_counts(count, text):
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.43121, "0.4312"),
        (9.8e-5, "9.8e-05"),
        (1234.5, "1,234.5"),
        (math.nan, "NaN"),
        (-math.inf, "-inf"),
        (0, "0"),
    ],
)
def test_metric_values(value, text):
    assert number_text(value) == text
