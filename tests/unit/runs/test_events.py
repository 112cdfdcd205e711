"""What a trainer's events say of its newest attempt."""

from needle.runs.events import Told, parse_events


def heard(*lines: str) -> Told:
    events, garbage = parse_events("".join(line + "\n" for line in lines).encode())
    assert garbage == 0
    return Told().hear_all(events)


def test_phases_total_and_end_are_heard() -> None:
    told = heard(
        '{"attempt":1,"kind":"phase","phase":"compiling"}',
        '{"attempt":1,"kind":"data","examples":9,"total":40}',
        '{"attempt":1,"kind":"phase","phase":"running"}',
        '{"attempt":1,"kind":"end","outcome":"failed","reason":"no memory"}',
    )
    assert told == Told(1, "running", 0, 40, "failed", "no memory")


def test_a_new_attempt_begins_without_the_words_of_the_last() -> None:
    told = heard(
        '{"attempt":1,"kind":"phase","phase":"running","total":40}',
        '{"attempt":1,"kind":"end","outcome":"finished"}',
        '{"attempt":2,"kind":"resumed","step":30}',
    )
    assert told == Told(2, "", 30, 40)


def test_late_words_of_an_earlier_attempt_change_nothing() -> None:
    told = heard(
        '{"attempt":2,"kind":"phase","phase":"compiling"}', '{"attempt":1,"kind":"end","outcome":"finished"}'
    )
    assert told == Told(2, "compiling")


def test_words_that_mean_nothing_are_ignored() -> None:
    told = heard(
        '{"kind":"phase","phase":"dancing"}',
        '{"kind":"end","outcome":"lost"}',
        '{"kind":"resumed","step":"x"}',
        '{"kind":"data","total":1.5,"attempt":true}',
        '{"kind":"end","outcome":["finished"]}',
    )
    assert told == Told(attempt=1)


def test_garbage_is_counted_and_a_glued_line_is_found() -> None:
    events, garbage = parse_events(
        b'nonsense\n{"kind":5}\n\n{"time":1,"kind":"ph{"time":2,"kind":"warning"}\n' + b"[" * 99_999 + b"\n"
    )
    assert [event["time"] for event in events] == [2]
    assert garbage == 3
