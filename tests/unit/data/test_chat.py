"""Chat lines are taken where they hold one exchange, and refused where more would be lost."""

import json

import pytest

TOOL = {"type": "function", "function": {"name": "play", "parameters": {}}}
TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "play", "arguments": '{"song": "Bach"}'}}
USER = {"role": "user", "content": "play Bach"}
ASSISTANT = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}
CALLS_TEXT = '[{"name":"play","arguments":{"song":"Bach"}}]'


def only_example(read, *messages, **others):
    found = read(json.dumps({"messages": messages, "tools": [TOOL], **others}))
    assert found.problems == []
    return found.examples[0]


def test_one_user_and_one_assistant_turn_become_a_plain_example(read):
    example = only_example(read, USER, ASSISTANT)
    assert (example.query, example.tools) == ("play Bach", '[{"name":"play","parameters":{}}]')
    assert example.answers == CALLS_TEXT


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_turn_in_front_becomes_the_system_text(read, role):
    assert only_example(read, {"role": role, "content": "be brief"}, USER, ASSISTANT).system == "be brief"


def test_an_assistant_who_only_talks_calls_nothing_and_that_is_said(read):
    found = read(json.dumps({"messages": [USER, {"role": "assistant", "content": "No."}], "tools": [TOOL]}))
    assert found.examples[0].answers == "[]"
    assert found.warnings[0].text == "the assistant's text is left out; only its calls are learned"


def test_the_older_single_call_is_taken(read):
    turn = {"role": "assistant", "function_call": {"name": "play", "arguments": '{"song": "Bach"}'}}
    found = read(json.dumps({"messages": [USER, turn], "functions": [{"name": "play"}]}))
    assert (found.examples[0].answers, found.examples[0].tools) == (CALLS_TEXT, '[{"name":"play"}]')


def test_empty_arguments_text_means_no_arguments(read):
    call = {"type": "function", "function": {"name": "play", "arguments": ""}}
    example = only_example(read, USER, {"role": "assistant", "tool_calls": [call]})
    assert example.answers == '[{"name":"play","arguments":{}}]'


def test_text_in_parts_is_joined(read):
    parts = [{"type": "text", "text": "play "}, {"type": "text", "text": "Bach"}]
    assert only_example(read, {"role": "user", "content": parts}, ASSISTANT).query == "play Bach"


def test_a_line_with_a_query_is_plain_whatever_its_messages(read):
    found = read(json.dumps({"query": "q", "tools": [], "answers": [], "messages": "ignored"}))
    assert found.examples[0].query == "q"


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([USER, ASSISTANT, USER, ASSISTANT], "holds ['user', 'assistant', 'user', 'assistant']"),
        ([USER], "holds ['user']"),
        ([], "holds []"),
        ([ASSISTANT, USER], "holds ['assistant', 'user']"),
        ("hello", "is not a list of objects"),
        ([1, 2], "is not a list of objects"),
        ([{"role": "user", "content": [{"type": "image_url"}]}, ASSISTANT], "other than text"),
        ([{"role": "user"}, ASSISTANT], "the user turn has no text"),
        ([USER, {**ASSISTANT, "tool_calls": [{"function": {"name": "p", "arguments": "{"}}]}], "not JSON"),
    ],
)  # fmt: skip
def test_any_other_conversation_is_a_problem_of_its_line(read, messages, said):
    good = json.dumps({"messages": [USER, ASSISTANT], "tools": [TOOL]})
    found = read(good + "\n" + json.dumps({"messages": messages, "tools": [TOOL]}))
    assert len(found.examples) == 1
    assert found.problems[0].line == 2
    assert said in found.problems[0].text
