"""Tokens agree with the published implementation, and a file that is no tokenizer says so."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import needle.data
from needle.data.examples import render
from needle.data.markers import MARKERS
from needle.data.parsing import parse_example
from needle.data.sample import sample_directory
from needle.data.tokenizer import Tokenizer, cut, tokenize
from needle.errors import InputError


@pytest.fixture
def tokenizer(golden):
    return Tokenizer.load(golden / "tokenizer.model")


@pytest.fixture
def golden_examples(golden):
    """(example as parsed, reference) for every reference example."""
    references = json.loads((golden / "render.json").read_text(encoding="utf-8"))
    return [(parse_example(one["example"], 1).example, one) for one in references]


def test_prompts_and_targets_are_those_of_the_published_implementation(golden_examples):
    assert len(golden_examples) == 8
    for example, reference in golden_examples:
        assert render(example) == (reference["prompt"], reference["target"])


def test_tokens_and_mask_are_those_of_the_published_implementation(golden_examples, tokenizer):
    for example, reference in golden_examples:
        length = len(reference["ids"])
        tokenized = cut(tokenize(example, tokenizer), length)
        padding = length - len(tokenized)
        assert np.pad(tokenized.tokens, (0, padding)).tolist() == reference["ids"]
        assert np.pad(tokenized.target_mask, (0, padding)).tolist() == [
            bool(one) for one in reference["mask"]
        ]


def test_the_loss_covers_the_target_and_the_end(golden_examples, tokenizer):
    example = golden_examples[0][0]
    tokenized = tokenize(example, tokenizer)
    target = tokenizer.encode(render(example)[1])
    assert tokenized.tokens[tokenized.target_mask].tolist() == [*target, 1]
    assert tokenized.target_tokens == len(target) + 1


def test_an_example_cut_within_its_prompt_has_nothing_to_learn(golden_examples, tokenizer):
    assert cut(tokenize(golden_examples[0][0], tokenizer), 20).target_tokens == 0


def test_markers_in_text_become_the_marker_pieces(tokenizer):
    assert set(range(4, 14)) <= set(tokenizer.encode(" ".join(MARKERS)))


@pytest.mark.parametrize("text", ["plain", "明日", "a\nb", "a\x00b", "naïve 🙂"])
def test_text_survives_encoding_and_decoding(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"not a model", "is not a SentencePiece model"),
        (b"version https://git-lfs", "is a Git LFS pointer"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_refused(written, content, said):
    path = written(content, "tokenizer.model")
    with pytest.raises(InputError, match=said) as refused:
        Tokenizer.load(path)
    assert refused.value.where == str(path)


def test_without_sentencepiece_it_says_what_to_install(golden, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(InputError, match="needs SentencePiece") as refused:
        Tokenizer.load(golden / "tokenizer.model")
    assert "needle-tui[train]" in refused.value.remedy


def test_no_module_of_the_room_loads_sentencepiece_or_jax_before_it_is_needed():
    names = [f"needle.data.{file.stem}" for file in Path(needle.data.__file__).parent.glob("*.py")]
    assert len(names) > 10
    script = (
        f"import sys, {', '.join(names)}; print({{'sentencepiece', 'jax', 'safetensors'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_model_without_the_markers_is_refused(written):
    from sentencepiece import sentencepiece_model_pb2 as pieces

    model = pieces.ModelProto()
    model.ParseFromString((sample_directory() / "tokenizer.model").read_bytes())
    model.pieces[6].piece = "<thinking>"
    path = written(model.SerializeToString(), "tokenizer.model")
    with pytest.raises(InputError, match="piece 6 is <thinking>, not <think>"):
        Tokenizer.load(path)
