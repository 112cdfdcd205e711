"""Answers read as calls, and the counts that come of comparing them."""

import pytest

from needle.data.calls import Call, Said, Scores, parse_calls, parse_said, same_calls
from needle.data.jsontext import JsonError
from needle.data.score_table import score_lines

WEATHER = Call("get_weather", {"city": "Oslo", "day": "today"})
ALARM = Call("set_alarm", {"time": "07:00"})


def said(*calls: Call) -> Said:
    return Said("", "", calls)


def test_reasoning_and_calls_are_told_apart():
    found = parse_said('<think>\nOslo\n</think>\n<tool_call>[{"name":"f","arguments":{"a":1}}]</tool_call>')
    assert (found.reasoning, found.calls, found.problem) == ("Oslo", (Call("f", {"a": 1}),), "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hello", "has no <tool_call>"),
        ('<tool_call>[{"name":', "breaks off before </tool_call>"),
        ("<tool_call>{}</tool_call>", "the calls are not a list"),
        ("<tool_call>[1]</tool_call>", "call 1 is not an object with a name and arguments"),
        ('<tool_call>[{"name":"f","arguments":[]}]</tool_call>', "call 1 is not an object"),
        ('<tool_call>[{"name":"f","name":"g"}]</tool_call>', "occurs twice"),
        ("<tool_call>[NaN]</tool_call>", "NaN is not a JSON number"),
    ],
)
def test_what_cannot_be_read_is_none_with_a_reason(text, problem):
    found = parse_said(text)
    assert found.calls is None
    assert problem in found.problem


def test_a_call_without_arguments_has_none():
    assert parse_calls('[{"name":"f"}]') == (Call("f", {}),)
    with pytest.raises(JsonError):
        parse_calls('[{"arguments":{}}]')


def test_calls_are_the_same_in_any_order_and_form_of_numbers():
    assert same_calls([WEATHER, ALARM], [ALARM, WEATHER])
    assert same_calls([Call("f", {"a": 5, "b": [1.0]})], [Call("f", {"b": [1], "a": 5.0})])
    assert not same_calls([Call("f", {"a": True})], [Call("f", {"a": 1})])
    assert not same_calls([Call("f", {"a": "5"})], [Call("f", {"a": 5})])
    assert not same_calls([ALARM, ALARM], [ALARM])


def test_each_kind_of_mistake_is_counted_where_it_belongs():
    scores = Scores()
    assert scores.add((WEATHER,), said(WEATHER))
    assert not scores.add((WEATHER,), said(Call("get_weather", {"city": "Rome", "days": 1})))
    assert not scores.add((WEATHER,), said(ALARM))
    assert not scores.add((WEATHER,), said())
    assert not scores.add((), said(ALARM))
    assert scores.add((), said())
    assert not scores.add((ALARM,), Said("noise", "", None, "has no <tool_call>"))
    assert (scores.examples, scores.exact, scores.right_tools) == (7, 2, 3)
    # Right: 2 of 2. Wrong: city=Oslo and day=today missed, city=Rome and days=1 not asked for.
    assert (scores.right_arguments, scores.arguments) == (2, 6)
    assert (scores.false_calls, scores.off_topic) == (1, 2)
    assert (scores.missed_calls, scores.on_topic) == (2, 5)
    assert scores.unreadable == 1
    assert Scores(**scores.facts()) == scores


def test_shares_of_nothing_are_none():
    assert Scores().exact_share is None
    assert Scores(examples=4, exact=1).exact_share == 0.25


def test_an_answer_that_cannot_be_read_is_no_right_refusal():
    scores = Scores()
    assert not scores.add((), Said("noise", "", None, "has no <tool_call>"))
    assert (scores.exact, scores.right_tools, scores.false_calls) == (0, 0, 0)


def test_the_table_has_a_column_for_each_form_and_a_line_for_each_share():
    lines = score_lines([("float32", Scores(examples=4, exact=1)), ("4 bits", Scores(examples=4, exact=2))])
    text = "\n".join(lines)
    assert "float32" in lines[0]
    assert "4 bits" in lines[0]
    assert "25" in text
    assert "50" in text
