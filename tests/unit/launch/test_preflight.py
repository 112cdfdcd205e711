"""What is known before a run starts: every problem at its field, in words."""

import json
from pathlib import Path

import pytest

from needle.errors import InputError
from needle.launch.preflight import inspect_finetune, require_sound

TOOL = {"name": "set_timer", "parameters": {"type": "object", "properties": {"minutes": {"type": "integer"}}}}


def example(query: str = "wait five minutes") -> str:
    answers = [{"name": "set_timer", "arguments": {"minutes": 5}}]
    return json.dumps({"query": query, "tools": [TOOL], "answers": answers}) + "\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(example() * 3 + "{broken\n" + example("wait " * 150))
    return path


def values(data: Path, **more: object) -> dict[str, object]:
    return {"data": str(data), "checkpoint": "sample", **more}


def test_a_sound_file_is_counted_in_tokens_with_its_bad_lines(data):
    facts = inspect_finetune(values(data))
    assert facts.problems == {}
    assert facts.data is not None
    assert (facts.data.examples, facts.data.usable, facts.data.counted) == (4, 4, True)
    assert [problem.line for problem in facts.data.problems] == [4]
    assert facts.base is not None
    assert facts.base.parameter_count > 1_000_000


def test_examples_over_the_limit_are_listed_by_line_and_left_out(data):
    facts = inspect_finetune(values(data, max_len=256))
    assert facts.data is not None
    assert facts.data.over_length_lines == (5,)
    assert (facts.data.usable, facts.problems) == (3, {})
    assert facts.data.longest <= 256


def test_examples_over_the_limit_can_stop_the_run(data):
    problems = inspect_finetune(values(data, max_len=256, over_length="stop")).problems
    assert set(problems) == {"max_len"}
    assert "lines 5" in problems["max_len"]


def test_patience_without_anything_held_out_is_a_problem(data):
    problems = inspect_finetune(values(data, patience=2, val_split=0.1)).problems
    assert "nothing is held out" in problems["patience"]
    assert inspect_finetune(values(data, patience=2, val_split=0.5)).problems == {}


def test_nothing_left_to_train_on_is_a_problem(data):
    problems = inspect_finetune(values(data, max_len=16)).problems
    assert "no example fits in 16 tokens" in problems["max_len"]


def test_every_problem_is_told_at_once_by_its_flag(tmp_path):
    facts = inspect_finetune(
        {"data": "no.jsonl", "checkpoint": "no.pkl", "epochs": "0", "out": "adapter.bin"}
    )
    assert set(facts.problems) == {"data", "checkpoint", "epochs", "out"}
    with pytest.raises(InputError) as caught:
        require_sound(facts)
    for words in ("no.jsonl: no such file", "--checkpoint: no.pkl", "--epochs: must be at least 1", "--out:"):
        assert words in str(caught.value)


def test_an_adapter_that_exists_is_not_overwritten_unless_asked(data, tmp_path):
    out = tmp_path / "adapter.safetensors"
    out.write_bytes(b"precious")
    assert "already exists" in inspect_finetune(values(data, out=str(out))).problems["out"]
    assert inspect_finetune(values(data, out=str(out), overwrite=True)).problems == {}


@pytest.mark.parametrize("name", ["folder/adapter.pkl", "a/b/c/adapter.safetensors"])
def test_an_adapter_may_go_into_a_folder_that_does_not_exist_yet(data, tmp_path, name):
    assert inspect_finetune(values(data, out=str(tmp_path / name))).problems == {}


def test_an_adapter_cannot_go_below_a_file(data, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    problems = inspect_finetune(values(data, out=str(tmp_path / "file" / "adapter.pkl"))).problems
    assert "cannot be written" in problems["out"]


def test_a_base_without_its_tokenizer_says_which_flag_names_one(data, tmp_path, golden):
    (tmp_path / "alone").mkdir()
    base = tmp_path / "alone" / "base.pkl"
    base.write_bytes((golden / "tiny.pkl").read_bytes())
    problems = inspect_finetune(values(data, checkpoint=str(base))).problems
    assert "--tokenizer" in problems["tokenizer"]


def test_a_file_that_is_no_tokenizer_is_a_problem_at_its_field(data, tmp_path):
    other = tmp_path / "tokenizer.model"
    other.write_bytes(b"not a model")
    assert "tokenizer" in inspect_finetune(values(data, tokenizer=str(other))).problems


def test_a_file_that_changed_is_read_again(data):
    assert inspect_finetune(values(data)).data.examples == 4
    data.write_text(example() * 9)
    assert inspect_finetune(values(data)).data.examples == 9
