"""Every way a line can be written, and what becomes of it (field-notes/jax.md, 3e)."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from needle.data import lines
from needle.data.examples import Example, read_examples, render
from needle.errors import InputError

TOOL = {"name": "play", "parameters": {"type": "object", "properties": {"song": {"type": "string"}}}}
CALL = {"name": "play", "arguments": {"song": "Bach"}}
RECORD = {"query": "play Bach", "tools": [TOOL], "answers": [CALL]}
GOOD = json.dumps(RECORD)
TOOLS_TEXT = json.dumps([TOOL], separators=(",", ":"))
CALLS_TEXT = json.dumps([CALL], separators=(",", ":"))


def line_of(**changes):
    return json.dumps({**RECORD, **changes}, ensure_ascii=False)


def problem_of(read, line):
    """The one problem of a line, which stands between two good ones that must not be lost."""
    text = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
    found = read(GOOD.encode() + b"\n" + text + b"\n" + GOOD.encode() + b"\n")
    assert [example.line for example in found.examples] == [1, 3]
    assert [problem.line for problem in found.problems] == [2]
    return found.problems[0].text


def test_a_plain_line_becomes_an_example_with_canonical_json(read):
    assert read(GOOD).examples == [Example("play Bach", TOOLS_TEXT, CALLS_TEXT, line=1)]


def test_rendering_follows_the_published_form():
    prompt, target = render(Example("hi", "[]", "[]", reasoning="none", system="be kind"))
    assert prompt == (
        "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>user\n<tools>[]</tools>\nhi<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert target == "<think>\nnone\n</think>\n<tool_call>[]</tool_call><|im_end|>"


def test_a_byte_order_mark_is_accepted(read):
    assert len(read(b"\xef\xbb\xbf" + GOOD.encode()).examples) == 1


def test_windows_line_ends_and_blank_lines_keep_the_numbers_of_lines(read):
    found = read(f"{GOOD}\r\n\r\n   \r\n{GOOD}\r\n")
    assert [example.line for example in found.examples] == [1, 4]
    assert found.problems == []


def test_a_unicode_line_separator_inside_a_text_is_not_a_line_end(read):
    found = read(line_of(query="one\u2028two\u0085three") + "\n" + GOOD)
    assert [example.query for example in found.examples] == ["one\u2028two\u0085three", "play Bach"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [("5", "a number"), ("null", "null"), ('"x"', "text"), ("[1]", "a list"), ("true", "true")],
)
def test_a_line_that_is_not_an_object_is_a_problem_of_that_line(read, line, kind):
    assert problem_of(read, line) == f"is {kind}, not an object with query, tools and answers"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999"])
def test_numbers_that_json_does_not_have_are_refused(read, number):
    line = GOOD.replace('"Bach"}}', f"{number}}}}}")
    assert number in line
    assert "is not JSON" in problem_of(read, line)


@pytest.mark.parametrize("number", ["NaN", "1e400"])
def test_they_are_refused_inside_json_text_too(read, number):
    answers = f'[{{"name":"play","arguments":{{"n":{number}}}}}]'
    assert "text that is not JSON" in problem_of(read, line_of(answers=answers))


def test_a_cut_last_line_is_reported_and_the_rest_is_kept(read):
    found = read(f"{GOOD}\n{GOOD}\n{GOOD[:40]}")
    assert len(found.examples) == 2
    assert found.problems[0].line == 3
    assert "the file may be cut off" in found.problems[0].text


@pytest.mark.parametrize("spelled", [json.dumps([CALL]), json.dumps([CALL], indent=1)])
def test_answers_and_tools_as_json_text_become_the_same_canonical_text(read, spelled):
    found = read(line_of(answers=spelled, tools=json.dumps([TOOL])))
    assert (found.examples[0].answers, found.examples[0].tools) == (CALLS_TEXT, TOOLS_TEXT)


def test_twice_encoded_json_is_refused(read):
    assert "encode it once" in problem_of(read, line_of(tools=json.dumps(json.dumps([TOOL]))))


def test_characters_beyond_ascii_reach_the_model_as_they_are(read):
    found = read('{"query":"\\u660e","tools":"[]","answers":[{"name":"é","arguments":{"a":"\\u660e"}}]}')
    assert found.examples[0].query == "明"
    assert found.examples[0].answers == '[{"name":"é","arguments":{"a":"明"}}]'


def test_function_calls_is_another_name_for_answers(read):
    record = {"query": "q", "tools": [TOOL], "function_calls": [CALL]}
    assert read(json.dumps(record)).examples[0].answers == CALLS_TEXT


def test_both_names_may_stand_together_only_when_they_agree(read):
    assert len(read(line_of(function_calls=json.dumps([CALL]))).examples) == 1
    assert "differ" in problem_of(read, line_of(function_calls=[]))


def test_wrapped_tools_and_calls_are_flattened(read):
    call = {"id": "1", "type": "function", "function": {"name": "play", "arguments": '{"song": "Bach"}'}}
    found = read(line_of(tools=[{"type": "function", "function": TOOL}], answers=[call]))
    assert (found.examples[0].tools, found.examples[0].answers) == (TOOLS_TEXT, CALLS_TEXT)
    assert found.warnings == []


def test_a_call_is_written_name_first_whatever_its_order_in_the_file(read):
    found = read(line_of(answers=[{"arguments": {"song": "Bach"}, "name": "play"}]))
    assert found.examples[0].answers == CALLS_TEXT


def test_reasoning_and_system_may_be_null_or_blank_and_are_else_kept_as_written(read):
    found = read(line_of(reasoning=None, system=None) + "\n" + line_of(reasoning=" why\n", system="  "))
    assert [(one.reasoning, one.system) for one in found.examples] == [("", ""), (" why\n", "")]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"query": None}, "'query' is null, not text"),
        ({"query": 5}, "'query' is a number, not text"),
        ({"query": " \n"}, "'query' is empty"),
        ({"reasoning": ["a"]}, "'reasoning' is a list, not text"),
        ({"system": 1}, "'system' is a number, not text"),
        ({"answers": None}, "'answers' is null; write [] where no tool fits"),
        ({"answers": "null"}, "'answers' is null; write [] where no tool fits"),
        ({"answers": CALL}, "'answers' is one object, not a list; put it in [ ]"),
        ({"answers": True}, "'answers' is true, not a list"),
        ({"answers": ["play"]}, "answer 1 is text, not an object with name and arguments"),
        ({"answers": [{"arguments": {}}]}, "answer 1 has no name"),
        (
            {"answers": [{"name": "play"}]},
            "answer 1 ('play') has no 'arguments'; write {} where there are none",
        ),
        (
            {"answers": [{"name": "play", "arguments": [1]}]},
            "the arguments of answer 1 ('play') are a list, not an object",
        ),
        ({"tools": None}, "'tools' is null; write [] for none"),
        ({"tools": ["play"]}, "tool 1 is text, not an object with a name"),
        ({"tools": [{"description": "x"}]}, "tool 1 has no name"),
        ({"tools": "[5"}, "'tools': text that is not JSON: expecting ',' delimiter at column 3"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_kind_is_named_with_the_reason(read, changes, said):
    assert problem_of(read, line_of(**changes)) == said


def test_missing_answers_are_taken_as_no_call_with_a_warning(read):
    found = read(GOOD + '\n{"query": "hello", "tools": []}')
    assert found.examples[1].answers == "[]"
    assert [tuple(warning) for warning in found.warnings] == [
        (2, "has no 'answers': taken as [], no tool to call")
    ]


def test_a_misspelled_name_is_not_taken_as_missing(read):
    record = {"query": "q", "tools": [TOOL], "Answer": [CALL]}
    assert problem_of(read, json.dumps(record)) == "has no 'answers' but 'Answer'; rename it to 'answers'"


def test_a_line_in_another_form_says_which_names_it_has(read):
    line = json.dumps({"instruction": "a", "output": "b"})
    assert problem_of(read, line) == "has no 'query'; its names are: 'instruction', 'output'"


def test_a_name_twice_in_one_object_is_refused(read):
    assert "'query' occurs twice" in problem_of(read, '{"query":"a","query":"b","tools":[],"answers":[]}')


def test_a_call_of_a_tool_that_is_not_offered_is_a_warning(read):
    found = read(line_of(answers=[{"name": "sing", "arguments": {}}]))
    assert found.warnings[0].text == "calls 'sing', which is not one of its tools"


def test_text_that_the_tokenizer_reads_as_markup_is_a_warning(read):
    assert (
        read(line_of(query="a <|im_end|> b")).warnings[0].text
        == "'query' holds <|im_end|>, which is read as markup"
    )


def test_half_a_surrogate_pair_is_refused(read):
    assert "surrogate" in problem_of(read, GOOD.replace("play Bach", "\\ud800"))


def test_a_line_that_is_not_utf8_says_which_byte(read):
    assert problem_of(read, GOOD.encode().replace(b"Bach", b"B\xe9ch", 1)).startswith(
        "is not UTF-8 text: byte 18 is 0xE9"
    )


@pytest.mark.parametrize(
    "bomb",
    ["[" * 100_000, '{"query":' * 50_000, '{"query":"q","tools":[],"answers":' + "[" * 900 + "]" * 900 + "}"],
)
def test_deep_nesting_is_a_problem_of_its_line(read, bomb):
    problem_of(read, bomb)


def test_a_number_of_many_digits_is_a_problem_of_its_line(read):
    assert "thousands of digits" in problem_of(read, GOOD.replace('"Bach"}}', "9" * 5000 + "}}"))


def test_a_line_without_end_is_skipped_in_bounded_memory(read, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE_BYTES", 1000)
    assert "is longer than" in problem_of(read, '{"query": "' + "x" * 5000 + '"}')


@pytest.mark.parametrize(
    ("content", "message", "remedy"),
    [
        (b"", "is empty", "JSON lines"),
        (b"\n \n\r\n", "holds only blank lines", "JSON lines"),
        (b"version https://git-lfs.example/spec/v1\noid sha256:0\n", "is a Git LFS pointer", "git lfs pull"),
        (b"<!DOCTYPE html><html></html>", "is a web page", "download"),
        (b"\x1f\x8b\x08\x00aaaa", "is compressed with gzip", "unpack"),
        (GOOD.encode("utf-16"), "is UTF-16 text", "UTF-8"),
        (json.dumps([RECORD]).encode(), "holds no usable example; line 1 is a list", "jq -c '.[]'"),
        (json.dumps(RECORD, indent=1).encode(), "holds no usable example; line 1 is not JSON", "jq -c ."),
        (b'{"query": "q", "tools": []}', "no example has 'answers'", "add answers"),
    ],
)  # fmt: skip
def test_a_file_with_nothing_to_learn_from_is_refused_with_file_reason_and_remedy(
    written, content, message, remedy
):
    path = written(content)
    with pytest.raises(InputError) as refused:
        read_examples(path)
    assert refused.value.message.startswith(message)
    assert refused.value.where.startswith(str(path))
    assert remedy in refused.value.remedy


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_examples(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="is a directory"):
        read_examples(tmp_path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        read_examples(tmp_path / "pipe")


def read_or_refusal(path):
    try:
        return read_examples(path)
    except InputError as error:
        return error


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "arguments", "function", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["query", "tools", "answers", "function_calls", "reasoning", "system", "messages", "role"]
)
NEARLY_EXAMPLES = st.dictionaries(
    NAMES, JSON_VALUES | st.just("q") | st.just([CALL]) | st.just("[]"), max_size=6
)
ANY_LINE = st.one_of(st.binary(max_size=60), NEARLY_EXAMPLES.map(lambda value: json.dumps(value).encode()))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ANY_LINE, max_size=5))
def test_any_bytes_give_examples_or_a_message_and_never_cost_the_good_lines(written, any_lines):
    path = written(b"\n".join([GOOD.encode(), *any_lines, GOOD.encode()]))
    found = read_examples(path)
    count = path.read_bytes().count(b"\n") + 1
    assert [found.examples[0].line, found.examples[-1].line] == [1, count]
    numbers = [one.line for one in (*found.examples, *found.problems)]
    assert len(numbers) == len(set(numbers))
    blank = sum(not line.strip() for line in path.read_bytes().split(b"\n"))
    assert len(numbers) + blank == count
    for note in (*found.problems, *found.warnings):
        assert note.text.encode("utf-8").decode().isprintable()
    for example in found.examples:
        for text in render(example):
            text.encode("utf-8")
        json.loads(example.answers, parse_constant=pytest.fail)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused_by_name(written, content):
    path = written(content)
    outcome = read_or_refusal(path)
    if isinstance(outcome, InputError):
        assert outcome.where.startswith(str(path))
        assert outcome.message
        assert outcome.remedy
    else:
        assert outcome.examples
