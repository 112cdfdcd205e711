import json
from pathlib import Path

import numpy as np
import pytest

from needle.config import FinetuneSettings
from needle.data.examples import ExampleFile, LineProblem
from needle.data.selection import select_examples
from needle.data.tokenizer import TokenizedExample
from needle.errors import InputError
from needle.train.inputs import read_inputs

READ = ExampleFile("tools.jsonl", 100, problems=[LineProblem(7, "is not JSON")])


def example(line: int, length: int, prompt: int) -> TokenizedExample:
    return TokenizedExample(np.ones(length, np.int32), np.arange(length) >= prompt, line)


TOKENIZED = [example(1, 10, 5), example(2, 40, 5), example(3, 40, 30), example(4, 20, 15)]


def test_over_length_examples_are_left_out_and_each_is_named() -> None:
    selected = select_examples(TOKENIZED, READ, 20, "skip")
    assert [one.line for one in selected.examples] == [1, 4]
    assert selected.skipped == (2, 3)
    assert selected.notes == (
        "tools.jsonl:7: is not JSON",
        "tools.jsonl:2: left out: 40 tokens, over the limit of 20",
        "tools.jsonl:3: left out: 40 tokens, over the limit of 20",
    )


def test_a_cut_keeps_what_still_has_a_target_and_leaves_out_what_has_none() -> None:
    selected = select_examples(TOKENIZED, READ, 20, "cut")
    assert [(one.line, len(one)) for one in selected.examples] == [(1, 10), (2, 20), (4, 20)]
    assert selected.skipped == (3,)
    assert "tools.jsonl:2: cut: 40 tokens, over the limit of 20" in selected.notes


def test_stop_refuses_and_lists_the_lines() -> None:
    with pytest.raises(InputError, match="2 examples are longer than 20 tokens: lines 2, 3"):
        select_examples(TOKENIZED, READ, 20, "stop")


def test_nothing_that_fits_is_an_error_with_the_shortest_length() -> None:
    with pytest.raises(InputError, match="no example fits in 8 tokens: the shortest of 4 has 10"):
        select_examples(TOKENIZED, READ, 8, "skip")


def test_without_over_length_examples_nothing_is_skipped_under_any_rule() -> None:
    for rule in ("skip", "cut", "stop"):
        assert select_examples(TOKENIZED, READ, 40, rule).skipped == ()


def settings_of(golden: Path, **changes: object) -> FinetuneSettings:
    files = {"data": str(golden / "train24.jsonl"), "checkpoint": str(golden / "tiny.pkl")}
    return FinetuneSettings(**{**files, **changes})  # type: ignore[arg-type]


def test_everything_is_read_from_the_settings_alone(golden: Path) -> None:
    inputs = read_inputs(settings_of(golden, batch_size=4, val_split=0.25))
    assert len(inputs.selected.examples) == 24
    assert inputs.batches.total_steps == 15
    assert inputs.base.config.num_layers == 3
    assert inputs.tokenizer == golden / "tokenizer.model"


def test_digests_tell_another_data_file_but_not_another_place(golden: Path, tmp_path: Path) -> None:
    digests = read_inputs(settings_of(golden)).digests
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((golden / "train24.jsonl").read_bytes())
    assert read_inputs(settings_of(golden, data=str(copy))).digests == digests
    first = json.loads(copy.read_text().splitlines()[0])
    copy.write_text(copy.read_text() + json.dumps(first) + "\n")
    changed = read_inputs(settings_of(golden, data=str(copy))).digests
    assert {name for name in digests if digests[name] != changed[name]} == {"the data"}


def test_a_tokenizer_with_more_pieces_than_the_base_knows_is_refused(golden: Path, tmp_path: Path) -> None:
    from needle.model import init_params, save_checkpoint
    from needle.model.configuration import TransformerConfig

    small = TransformerConfig(
        vocab_size=512,
        d_model=32,
        num_heads=2,
        num_kv_heads=1,
        num_layers=1,
        engram_layers=(),
        engram_slots=8,
    )
    save_checkpoint(tmp_path / "small.safetensors", init_params(small, 0), small)
    settings = settings_of(
        golden, checkpoint=str(tmp_path / "small.safetensors"), tokenizer=str(golden / "tokenizer.model")
    )
    with pytest.raises(InputError, match=r"has 1024 pieces, but .* knows 512"):
        read_inputs(settings)
