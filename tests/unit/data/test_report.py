"""What is said of a data file before training."""

import json
from pathlib import Path

import pytest

from needle.data.examples import read_examples
from needle.data.report import DataReport, report_lines, report_on
from needle.data.sample import sample_directory
from needle.data.tokenizer import Tokenizer, tokenize

TOOLS = [
    {
        "name": "dim",
        "parameters": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
    },
    {"name": "lock"},
]


def row(query: str, *calls: dict[str, object]) -> dict[str, object]:
    return {"query": query, "tools": TOOLS, "answers": list(calls)}


def dim(room: object) -> dict[str, object]:
    return {"name": "dim", "arguments": {"room": room}}


@pytest.fixture
def report(tmp_path: Path):
    """A function from rows to the report on them."""

    def make(*rows: dict[str, object], tokenizer: Tokenizer | None = None) -> DataReport:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
        read = read_examples(path)
        return report_on(read, [tokenize(one, tokenizer) for one in read.examples] if tokenizer else [])

    return make


def test_prompts_that_come_again_are_told_and_whether_their_answers_agree(report):
    found = report(row("a", dim("x")), row("b"), row("a", dim("x")), row("a", dim("y")), row("b"))
    assert (found.repeated, found.contradicting) == ((3, 4, 5), (4,))
    assert "3 prompts occur before, 1 of them with another answer: lines 4" in report_lines(found)


def test_tools_that_no_answer_calls_are_named(report):
    found = report(row("a", dim("x")), row("b"))
    assert (found.tools, found.never_called, found.off_topic) == (2, ("lock",), 1)
    assert "tools declared: 2; 50% of the examples call none" in report_lines(found)
    assert "1 tool is never called: lock" in report_lines(found)


def test_answers_that_break_what_is_declared_are_listed_by_line(report):
    found = report(row("a", dim("x")), row("b", dim(3)), row("c", {"name": "open", "arguments": {}}))
    assert [line for line, _ in found.broken] == [2, 3]
    text = "\n".join(report_lines(found))
    assert "2 answers broke what their tools declare:" in text
    assert "line 2: 'dim'.room: 3 is not of type 'string'" in text
    assert "line 3: calls 'open', which is not declared" in text


def test_a_long_list_is_cut_and_says_so(report):
    found = report(*(row(str(number), dim(number)) for number in range(20)))
    assert len(found.broken) == 20
    assert report_lines(found)[-1] == "  … 14 more"


def test_tokens_are_counted_as_training_counts_them(report):
    tokenizer = Tokenizer.load(sample_directory() / "tokenizer.model")
    found = report(row("a", dim("x")), row("a longer one"), tokenizer=tokenizer)
    assert 0 < found.target_tokens < found.tokens
    assert found.tokens / 2 < found.longest < found.tokens
    assert report_lines(found)[0].startswith(f"2 examples, {found.tokens:,} tokens, the longest ")
    assert report_lines(report(row("a", dim("x"))))[0] == "1 example"


def test_the_sample_has_nothing_to_mend():
    read = read_examples(sample_directory() / "train.jsonl")
    found = report_on(read, [])
    assert (found.repeated, found.never_called, found.broken) == ((), (), ())
