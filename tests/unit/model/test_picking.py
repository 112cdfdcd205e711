"""Tokens picked by their scores, drawn at a temperature, and held to a grammar whatever the model says."""

import json

import numpy as np
import pytest

from needle.data.calls import parse_said
from needle.data.markers import EOS_ID, TURN_END_ID
from needle.data.sample import sample_directory
from needle.data.schemas import call_problem
from needle.data.tokenizer import Tokenizer
from needle.model.picking import Constrained, Sampler, held_to

TOOLS = json.dumps([
    {"name": "dim", "parameters": {"type": "object", "required": ["room", "level"], "properties": {
        "room": {"type": "string"}, "level": {"type": "integer"}}}},
    {"name": "lock", "parameters": {"type": "object", "properties": {"door": {"enum": ["front", "bäck"]}}}},
])  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.load(sample_directory() / "tokenizer.model")


def answered(pick: Constrained, tokenizer: Tokenizer, limit: int, seed: int) -> tuple[str, list[int]]:
    """What is said by a model that says anything at all."""
    scores = np.random.default_rng(seed)
    tokens: list[int] = []
    for _ in range(limit):
        tokens.append(pick(0, scores.normal(0, 3, tokenizer.vocab_size).astype(np.float32)))
        if tokens[-1] in (EOS_ID, TURN_END_ID):
            break
    return tokenizer.decode(tokens[:-1]), tokens


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("limit", [8, 40, 120])
def test_noise_becomes_a_whole_answer_that_keeps_to_the_schemas(tokenizer, seed, limit):
    pick = held_to([TOOLS], tokenizer, limit, Sampler(temperature=1.0, seed=seed))
    text, tokens = answered(pick, tokenizer, limit, seed)
    assert tokens[-1] == TURN_END_ID
    said = parse_said(text)
    assert said.calls is not None, (text, said.problem)
    assert not [problem for call in said.calls if (problem := call_problem(TOOLS, call.name, call.arguments))]


def test_an_answer_that_is_allowed_is_not_changed(tokenizer):
    wanted = tokenizer.encode(
        '<tool_call>[{"name":"dim","arguments":{"room":"Zoë","level":3}}]</tool_call><|im_end|>'
    )
    pick = held_to([TOOLS], tokenizer, 64, Sampler())
    for token in wanted:
        logits = np.zeros(tokenizer.vocab_size, np.float32)
        logits[token] = 1
        assert pick(0, logits) == token


def test_rows_are_held_each_to_their_own_tools(tokenizer):
    pick = held_to([TOOLS, "[]"], tokenizer, 64, Sampler())
    wanted = tokenizer.encode("<tool_call>[{")
    taken = {
        row: [pick(row, np.eye(1, tokenizer.vocab_size, token)[0]) == token for token in wanted]
        for row in (0, 1)
    }
    assert all(taken[0])
    assert not all(taken[1])


def test_every_token_of_the_tokenizer_says_what_it_decodes_to(tokenizer):
    for token, symbols in enumerate(tokenizer.symbols):
        if symbols is not None and max(symbols) < 0x80:
            # Decoding takes the space from the front of a text: something goes before it.
            piece = tokenizer.decode([*tokenizer.encode("x"), token])
            assert piece == "x" + bytes(symbols).decode()


def test_a_draw_follows_the_distribution_and_the_seed():
    logits = np.log(np.array([0.6, 0.3, 0.1], np.float32))
    drawn = [Sampler(1.0, seed)(0, logits) for seed in range(4000)]
    shares = np.bincount(drawn, minlength=3) / len(drawn)
    assert np.abs(shares - [0.6, 0.3, 0.1]).max() < 0.03
    assert [Sampler(1.0, 7)(0, logits) for _ in range(3)] == [Sampler(1.0, 7)(0, logits)] * 3
    assert Sampler(0.0)(0, logits) == 0
