"""The metric table: attempts, gaps, and arrays that stay what they were."""

import numpy as np
import pytest

from needle.runs.metric_lines import MetricDecoder
from needle.runs.metrics import AttemptStart, MetricTable


def lines(steps: range | list[int], attempt: int = 1, time_of: float = 0.1, **extra: float) -> bytes:
    fields = "".join(f',"{name}":{value}' for name, value in extra.items())
    return "".join(
        f'{{"step":{step},"time":{index * time_of},"attempt":{attempt},'
        f'"loss":{step + attempt / 10}{fields}}}\n'
        for index, step in enumerate(steps, start=1)
    ).encode()


def table_of(*blocks: bytes) -> MetricTable:
    decoder, table = MetricDecoder(), MetricTable()
    for block in blocks:
        table.append(decoder.decode(block))
    return table


def test_a_resumed_attempt_supersedes_points_from_its_first_step_on() -> None:
    table = table_of(lines(range(1, 11)), lines(range(6, 9), attempt=2))
    loss = table.series("loss")
    assert loss.steps.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert loss.values.tolist() == [1.1, 2.1, 3.1, 4.1, 5.1, 6.2, 7.2, 8.2]
    assert table.attempts == (AttemptStart(1, 1), AttemptStart(2, 6))


def test_attempts_in_one_block_are_told_apart() -> None:
    table = table_of(lines(range(1, 11)) + lines(range(6, 9), attempt=2) + lines(range(8, 12), attempt=3))
    assert table.series("loss").values.tolist() == [1.1, 2.1, 3.1, 4.1, 5.1, 6.2, 7.2, 8.3, 9.3, 10.3, 11.3]


def test_the_generation_changes_when_points_are_superseded_and_only_then() -> None:
    decoder, table = MetricDecoder(), MetricTable()
    table.append(decoder.decode(lines(range(1, 11))))
    first = table.series("loss").generation
    table.append(decoder.decode(lines(range(11, 13))))
    assert table.series("loss").generation == first
    table.append(decoder.decode(lines(range(13, 15), attempt=2)))
    assert table.series("loss").generation == first
    table.append(decoder.decode(lines(range(9, 15), attempt=3)))
    assert table.series("loss").generation == first + 1


def test_a_series_once_given_never_changes() -> None:
    decoder, table = MetricDecoder(), MetricTable()
    table.append(decoder.decode(lines(range(1, 1001))))
    before = table.series("loss")
    kept = before.values.copy(), before.steps.copy(), before.times.copy()
    table.append(decoder.decode(lines(range(500, 3000), attempt=2)))
    assert np.array_equal(before.values, kept[0])
    assert np.array_equal(before.steps, kept[1])
    assert np.array_equal(before.times, kept[2])
    with pytest.raises(ValueError, match="read-only"):
        before.values[0] = 0


def test_late_lines_of_a_superseded_attempt_change_nothing() -> None:
    table = table_of(lines(range(1, 6)), lines(range(4, 7), attempt=2), lines(range(6, 9), attempt=1))
    assert table.series("loss").values.tolist() == [1.1, 2.1, 3.1, 4.2, 5.2, 6.2]


def test_times_go_on_across_attempts_without_what_was_superseded() -> None:
    table = table_of(lines(range(1, 11), time_of=1.0), lines(range(6, 9), attempt=2, time_of=1.0))
    assert table.series("loss").times.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_metric_reported_now_and_then_keeps_its_own_steps_times_and_tokens() -> None:
    every = b"".join(
        b'{"step":%d,"time":%d,"loss":1.0,"tokens":%d%s}\n'
        % (step, step, step * 10, b',"val_loss":%d' % step if step % 5 == 0 else b"")
        for step in range(1, 21)
    )
    validation = table_of(every).series("val_loss")
    assert validation.steps.tolist() == [5, 10, 15, 20]
    assert validation.values.tolist() == [5, 10, 15, 20]
    assert validation.times.tolist() == [5, 10, 15, 20]
    assert validation.tokens.tolist() == [50, 100, 150, 200]


def test_evaluation_lines_of_their_own_take_the_tokens_known_then() -> None:
    table = table_of(
        b'{"step":1,"loss":1.0,"tokens":10}\n{"step":1,"val_loss":2.0}\n{"step":2,"loss":0.5,"tokens":20}\n'
    )
    assert table.series("val_loss").tokens.tolist() == [10]
    assert table.series("loss").steps.tolist() == [1, 2]
    assert table.series("loss").tokens.tolist() == [10, 20]


def test_superseding_reaches_sparse_metrics_too() -> None:
    first = lines(range(1, 5)) + b'{"step":4,"attempt":1,"val_loss":1.0}\n'
    first += lines(range(5, 9)) + b'{"step":8,"attempt":1,"val_loss":2.0}\n'
    table = table_of(first, lines(range(5, 7), attempt=2), b'{"step":6,"attempt":2,"val_loss":3.0}\n')
    assert table.series("val_loss").steps.tolist() == [4, 6]
    assert table.series("val_loss").values.tolist() == [1.0, 3.0]
    assert table.series("loss").values.tolist() == [1.1, 2.1, 3.1, 4.1, 5.2, 6.2]


def test_steps_of_a_series_never_decrease_whatever_the_order_of_the_lines() -> None:
    table = table_of(lines([1, 2, 5, 3, 4]) + lines([4, 6], attempt=2))
    loss = table.series("loss")
    assert loss.steps.tolist() == [1, 2, 3, 4, 6]
    assert loss.values.tolist() == [1.1, 2.1, 3.1, 4.2, 6.2]


def test_a_file_begun_anew_supersedes_like_an_attempt() -> None:
    decoder, table = MetricDecoder(), MetricTable()
    table.append(decoder.decode(lines(range(1, 11))))
    table.restart()
    table.append(decoder.decode(lines(range(1, 4))))
    assert table.series("loss").steps.tolist() == [1, 2, 3]


def test_a_rotated_file_that_goes_on_loses_nothing() -> None:
    decoder, table = MetricDecoder(), MetricTable()
    table.append(decoder.decode(lines(range(1, 11))))
    table.restart()
    table.append(decoder.decode(lines(range(11, 13))))
    assert table.series("loss").steps.tolist() == list(range(1, 13))


def test_an_unknown_metric_is_an_empty_series() -> None:
    assert len(MetricTable().series("loss")) == 0
    assert MetricTable().last("loss") is None
    assert MetricTable().recent_median("loss") is None


def test_last_and_recent_median_are_of_the_end() -> None:
    table = table_of(lines(range(1, 101)) + b'{"step":101,"loss":"NaN"}\n')
    assert np.isnan(table.last("loss") or 0)
    assert table.recent_median("loss", 10) == pytest.approx(96.1)


def test_many_attempts_are_read_in_good_time() -> None:
    blocks = [lines(range(attempt * 10, attempt * 10 + 20), attempt=attempt) for attempt in range(1, 500)]
    table = table_of(b"".join(blocks))
    assert len(table) == 498 * 10 + 20
    assert len(table.attempts) == 499
