"""Metrics lines of every kind, good and bad."""

import math

import numpy as np
import pytest

from needle.runs.metric_lines import MetricDecoder
from needle.runs.metrics import MetricTable, Series


def table_of(*blocks: bytes) -> tuple[MetricTable, MetricDecoder]:
    decoder, table = MetricDecoder(), MetricTable()
    for block in blocks:
        table.append(decoder.decode(block))
    return table, decoder


def points(series: Series) -> list[tuple[int, float]]:
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


GOOD = b'{"step":1,"time":0.5,"attempt":1,"loss":3.0}\n{"step":2,"time":1.0,"attempt":1,"loss":2.5}\n'


def test_lines_become_points() -> None:
    table, decoder = table_of(GOOD)
    assert points(table.series("loss")) == [(1, 3.0), (2, 2.5)]
    assert table.series("loss").times.tolist() == [0.5, 1.0]
    assert (decoder.garbage_lines, table.names()) == (0, ("loss",))


GARBAGE = {
    "text": b"not json",
    "not utf-8": b"\xff\xfe\x00",
    "zeros": b"\x00" * 100,
    "a list": b"[1,2]",
    "a number": b"7",
    "null": b"null",
    "no step": b'{"loss":1.0}',
    "step a word": b'{"step":"x","loss":1.0}',
    "step a fraction": b'{"step":1.5,"loss":1.0}',
    "step not a number": b'{"step":NaN,"loss":1.0}',
    "step enormous": b'{"step":1e300,"loss":1.0}',
    "step a truth": b'{"step":true,"loss":1.0}',
    "cut": b'{"step":3,"loss":1.0',
    "one brace more": b'{"step":3,"loss":1.0}}',
    "nested without end": b"[" * 100_000,
    "nested inside": b'{"step":3,"x":' + b"[" * 100_000,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_counted_and_the_lines_around_it_are_kept(garbage: bytes) -> None:
    table, decoder = table_of(GOOD[:45] + garbage + b"\n" + GOOD[45:])
    assert points(table.series("loss")) == [(1, 3.0), (2, 2.5)]
    assert decoder.garbage_lines == 1


def test_a_line_broken_in_two_is_two_garbage_lines_not_a_point() -> None:
    table, decoder = table_of(GOOD + b'{"step":3\n"loss":1.0}\n')
    assert points(table.series("loss")) == [(1, 3.0), (2, 2.5)]
    assert decoder.garbage_lines == 2


def test_blank_lines_are_no_garbage() -> None:
    table, decoder = table_of(b"\n" + GOOD + b"\n  \n")
    assert (len(table), decoder.garbage_lines) == (2, 0)


def test_a_line_glued_to_a_half_one_is_found() -> None:
    table, decoder = table_of(GOOD + b'{"step":3,"lo{"step":3,"loss":2.0}\n')
    assert points(table.series("loss"))[-1] == (3, 2.0)
    assert decoder.garbage_lines == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ('"Infinity"', math.inf),
        ('"-Infinity"', -math.inf),
        ("1e400", math.inf),
    ],
)
def test_infinite_values_are_points(text: str, expected: float) -> None:
    table, decoder = table_of(GOOD + f'{{"step":3,"loss":{text}}}\n'.encode())
    assert points(table.series("loss"))[-1] == (3, expected)
    assert decoder.garbage_lines == 0


@pytest.mark.parametrize("text", ["NaN", '"NaN"', '"nan"'])
def test_a_nan_is_a_point_and_an_absent_value_is_none(text: str) -> None:
    table, _ = table_of(
        GOOD, f'{{"step":3,"loss":{text}}}\n{{"step":4}}\n{{"step":5,"loss":null}}\n'.encode()
    )
    loss = table.series("loss")
    assert loss.steps.tolist() == [1, 2, 3]
    assert np.isnan(loss.values[-1])
    assert table.last_step == 5


def test_new_names_may_come_at_any_time() -> None:
    table, decoder = table_of(GOOD, b'{"step":3,"loss":2.0,"bleu":0.5}\n', b'{"step":4,"bleu":0.6}\n')
    assert points(table.series("bleu")) == [(3, 0.5), (4, 0.6)]
    assert points(table.series("loss")) == [(1, 3.0), (2, 2.5), (3, 2.0)]
    assert decoder.garbage_lines == 0


def test_what_is_no_number_is_ignored_and_costs_no_numbers() -> None:
    line = b'{"step":%d,"loss":1.0,"note":"warm","ok":true,"shape":[1,2],"deep":{"a":1}}\n'
    table, decoder = table_of(*(line % step for step in (1, 2, 3)))
    assert table.names() == ("loss",)
    assert (len(table.series("loss")), decoder.garbage_lines) == (3, 0)


def test_a_metric_that_is_sometimes_a_word_keeps_its_numbers() -> None:
    table, decoder = table_of(b'{"step":1,"score":1.0}\n{"step":2,"score":"none"}\n{"step":3,"score":2}\n')
    assert points(table.series("score")) == [(1, 1.0), (3, 2.0)]
    assert decoder.garbage_lines == 0


def test_endless_new_names_are_bounded() -> None:
    decoder, table = MetricDecoder(), MetricTable()
    for start in range(0, 3000, 100):
        block = b"".join(b'{"step":%d,"m%d":1.0,"loss":2.0}\n' % (i, i) for i in range(start, start + 100))
        table.append(decoder.decode(block))
    assert len(table.names()) <= 1000
    assert len(table.series("loss")) == 3000
