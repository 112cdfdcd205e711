"""The embedded sample is what its script makes, and good enough to learn from."""

import json

import pytest
import sentencepiece

from needle.data.examples import read_examples, render
from needle.data.order import training_order
from needle.data.packing import plan_packing
from needle.data.sample import sample_directory
from needle.data.tokenizer import Tokenizer, tokenize
from tools.make_sample import base_examples, make_rows, train_tokenizer, write_rows


@pytest.fixture(scope="module")
def training():
    return read_examples(sample_directory() / "train.jsonl")


@pytest.fixture(scope="module")
def held_out():
    return read_examples(sample_directory() / "heldout.jsonl")


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.load(sample_directory() / "tokenizer.model")


def test_the_script_makes_exactly_these_files(tmp_path):
    for name, rows in zip(("train.jsonl", "heldout.jsonl"), make_rows(), strict=True):
        write_rows(tmp_path / name, rows)
        assert (tmp_path / name).read_bytes() == (sample_directory() / name).read_bytes()


def test_the_tokenizer_is_learned_from_the_sample_and_what_the_base_was_trained_on(training):
    learned = pieces(train_tokenizer([*base_examples(), *3 * training.examples]))
    embedded = pieces((sample_directory() / "tokenizer.model").read_bytes())
    assert len(learned) == len(embedded) == 1024
    assert len(set(learned) & set(embedded)) == 1017


def pieces(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


def test_every_line_is_clean(training, held_out):
    for read in (training, held_out):
        assert (read.problems, read.warnings) == ([], [])


def test_it_is_large_and_varied_enough(training, held_out):
    assert len(training.examples) >= 300
    assert len(held_out.examples) >= 50
    called = {call["name"] for example in training.examples for call in json.loads(example.answers)}
    offered = {tool["name"] for example in training.examples for tool in json.loads(example.tools)}
    assert called == offered
    assert len(called) >= 12
    calls = [len(json.loads(example.answers)) for example in training.examples]
    assert 0.05 < calls.count(0) / len(calls) < 0.25
    assert calls.count(2) > 20
    assert all(len(json.loads(example.tools)) >= 2 for example in training.examples)
    assert 0.2 < sum(bool(example.reasoning) for example in training.examples) / len(calls) < 0.5


def test_no_query_is_trained_on_twice_or_held_out_as_well(training, held_out):
    queries = [example.query.lower() for read in (training, held_out) for example in read.examples]
    assert len(set(queries)) == len(queries)


def test_every_argument_is_of_its_tool_and_required_ones_are_there(training, held_out):
    for example in (*training.examples, *held_out.examples):
        tools = {tool["name"]: tool["parameters"] for tool in json.loads(example.tools)}
        for call in json.loads(example.answers):
            parameters = tools[call["name"]]
            assert set(parameters["required"]) <= set(call["arguments"]) <= set(parameters["properties"])


def test_examples_are_short_enough_for_two_cores(training, tokenizer):
    lengths = [len(tokenize(example, tokenizer)) for example in training.examples]
    assert max(lengths) <= 320
    assert sum(lengths) / len(lengths) < 180
    order = training_order(len(lengths), 0.1, 0, 10)
    batches = [[lengths[one] for one in order.batch(step, 16)] for step in range(order.total_steps(16))]
    shape = plan_packing(batches)
    used = sum(sum(batch) for batch in batches) / (len(batches) * shape.rows * shape.length)
    assert used > 0.7


def test_its_tokenizer_treats_text_as_the_reference_tokenizer_does(golden, tokenizer):
    reference = Tokenizer.load(golden / "tokenizer.model")
    assert tokenizer.vocab_size == reference.vocab_size == 1024
    for text in ("a\nb", "a  b", " a ", "a\t\u00a0b", "\n\n", "<tools>[]</tools>\nx", "caf\u00e9 \u660e", ""):
        assert tokenizer.decode(tokenizer.encode(text)) == reference.decode(reference.encode(text))


def test_every_text_of_the_sample_survives_its_tokenizer(training, held_out, tokenizer):
    for example in (*training.examples, *held_out.examples):
        for text in render(example):
            assert "".join(tokenizer.decode(tokenizer.encode(text)).split()) == "".join(text.split())
