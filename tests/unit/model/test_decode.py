"""Generation with a memory gives the tokens that computing everything anew would give."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from needle.data.markers import BOS_ID, TURN_END_ID
from needle.data.tokenizer import Tokenizer
from needle.model.architecture import Execution, SimpleAttentionNetwork, TransformerConfig
from needle.model.checkpoints import load_checkpoint
from needle.model.decode import Generator, padded_length
from needle.model.initialise import init_params

WIDE = TransformerConfig(
    vocab_size=97, d_model=48, attn_dim=32, num_heads=4, num_kv_heads=2, num_layers=3, engram_slots=32,
    engram_layers=(0, 2), mhc_lanes=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def golden(request):
    return request.config.rootpath / "tests" / "golden"


def lively(config, seed=0):
    """Fresh weights large enough that the next token depends on what came before."""
    params = init_params(config, seed)
    noise = iter(jax.random.split(jax.random.PRNGKey(seed + 1), 100))
    return jax.tree.map(lambda leaf: leaf + 0.3 * jax.random.normal(next(noise), leaf.shape), params)


def prompts_of(config, lengths, seed=0):
    drawn = np.random.default_rng(seed)
    return [[BOS_ID, *drawn.integers(14, config.vocab_size, length - 1).tolist()] for length in lengths]


@pytest.mark.parametrize("execution", [Execution(), Execution(unroll=True, kernel="manual")], ids=str)
@pytest.mark.parametrize("quant", [False, True])
def test_tokens_are_those_of_computing_all_anew(execution, quant):
    model, variables = SimpleAttentionNetwork(WIDE, execution), {"params": lively(WIDE)}
    prompts = prompts_of(WIDE, (1, 2, 5, 13, 40, 64))
    generator = Generator(model, variables, quant=quant)
    steps = [list(tokens) for tokens in zip(*generator.steps(prompts, 20, pick=never_ending), strict=True)]
    for prompt, ours in zip(prompts, steps, strict=True):
        expected = anew(model, variables, prompt, 20, quant)
        assert ours == expected
    assert len({tuple(tokens) for tokens in steps}) == len(prompts), "the model must heed its prompt"


def never_ending(row, logits):
    return 14 + int(np.argmax(logits[14:]))


def anew(model, variables, prompt, count, quant):
    apply = jax.jit(lambda tokens: model.apply(variables, tokens, None, quant))
    tokens = list(prompt)
    padded = np.zeros((1, len(prompt) + count), np.int32)
    for _ in range(count):
        padded[0, : len(tokens)] = tokens
        tokens.append(never_ending(0, np.asarray(apply(jnp.asarray(padded))[0, len(tokens) - 1])))
    return tokens[len(prompt) :]


def test_logits_agree_with_those_of_the_whole_text(golden):
    params, config = load_checkpoint(golden / "tiny.pkl")
    model = SimpleAttentionNetwork(config)
    (prompt,) = prompts_of(config, (30,))
    seen = []

    def pick(row, logits):
        seen.append(logits.copy())
        return int(np.argmax(logits))

    tokens = [step[0] for step in Generator(model, {"params": params}).steps([prompt], 12, pick)]
    whole = model.apply({"params": params}, jnp.asarray([prompt + tokens]))[0, len(prompt) - 1 : -1]
    np.testing.assert_allclose(np.stack(seen), whole[: len(seen)], atol=1e-5, rtol=0)


def test_greedy_text_is_the_published_one(golden):
    params, config = load_checkpoint(golden / "tiny.pkl")
    tokenizer = Tokenizer.load(golden / "tokenizer.model")
    cases = json.loads((golden / "generate.json").read_text())
    prompts = [[BOS_ID, *tokenizer.encode(case["prompt"])] for case in cases]
    texts = Generator(SimpleAttentionNetwork(config), {"params": params}).generate(prompts, 24)
    assert [tokenizer.decode(text.tokens) for text in texts] == [case["text"] for case in cases]


def test_a_text_ends_with_its_turn_and_the_others_go_on():
    model, variables = SimpleAttentionNetwork(WIDE), {"params": lively(WIDE)}
    calls = []

    def pick(row, logits):
        calls.append(row)
        return TURN_END_ID if row == 0 and calls.count(0) == 3 else 20

    first, second = Generator(model, variables).generate(prompts_of(WIDE, (4, 9)), 6, pick)
    assert (first.tokens, first.ended) == ([20, 20], True)
    assert (second.tokens, second.ended) == ([20] * 6, False)
    assert calls.count(0) == 3


def test_prompts_are_padded_to_few_lengths():
    lengths = [padded_length(length) for length in range(1, 3000)]
    assert len(set(lengths)) < 14
    assert all(padded >= length for length, padded in enumerate(lengths, 1))
