"""Generation with a memory against computing all anew: `python benchmarks/decode.py [--model published]`.

Both continue the same prompts greedily by 64 tokens. Computing anew is the compiled forward pass over the
whole text at each token, which is what a training framework without a memory does; it is timed over a few
tokens, at the length in the middle. The tokens of both are compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np

from needle.model.architecture import PRESETS, SimpleAttentionNetwork, TransformerConfig
from needle.model.decode import Generator, Logits
from needle.model.initialise import init_params

MODELS = {
    "sample": PRESETS["sample"],
    "published": dataclasses.replace(TransformerConfig(), num_layers=27),
}
NEW_TOKENS = 64
TIMED_STEPS = 3


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="sample")
    options = parser.parse_args()
    config = MODELS[options.model]
    model = SimpleAttentionNetwork(config)
    variables = {"params": jax.device_put(init_params(config, 0))}
    print(f"{options.model} model, {NEW_TOKENS} new tokens, {jax.default_backend()}")
    print(
        f"{'batch':>5} {'prompt':>6} {'anew s':>8} {'memory s':>8} {'of it reading':>13} {'ratio':>7} tokens"
    )
    for batch, length in ((1, 128), (1, 512), (8, 512)):
        prompts = np.random.default_rng(0).integers(14, config.vocab_size, (batch, length))
        anew_s = anew_seconds(model, variables, prompts)
        reading_s, whole_s, texts = memory_seconds(model, variables, prompts)
        same = "same" if agree(model, variables, prompts, texts) else "DIFFER"
        ratio = anew_s / whole_s
        print(
            f"{batch:>5} {length:>6} {anew_s:>8.2f} {whole_s:>8.2f} {reading_s:>13.2f} {ratio:>6.1f}x  {same}"
        )


def anew_seconds(model: SimpleAttentionNetwork, variables: dict[str, object], prompts: np.ndarray) -> float:
    """Seconds that all new tokens take when each is computed from the whole text."""
    best = jax.jit(lambda tokens: jnp.argmax(model.apply(variables, tokens)[:, -1], axis=-1))
    text = jnp.asarray(np.pad(prompts, ((0, 0), (0, NEW_TOKENS // 2)), constant_values=20))
    best(text).block_until_ready()
    began = time.perf_counter()
    for _ in range(TIMED_STEPS):
        best(text).block_until_ready()
    return (time.perf_counter() - began) / TIMED_STEPS * NEW_TOKENS


def memory_seconds(
    model: SimpleAttentionNetwork, variables: dict[str, object], prompts: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """(seconds until the first token, seconds until the last, tokens (B, new)); compiled before."""
    generator = Generator(model, variables)

    def pick(row: int, logits: Logits) -> int:
        return 14 + int(np.argmax(logits[14:]))

    list(generator.steps(prompts.tolist(), NEW_TOKENS, pick))
    began = time.perf_counter()
    texts, first_at = [], 0.0
    for tokens in generator.steps(prompts.tolist(), NEW_TOKENS, pick):
        first_at = first_at or time.perf_counter()
        texts.append(tokens)
    return first_at - began, time.perf_counter() - began, np.array(texts).T


def agree(
    model: SimpleAttentionNetwork, variables: dict[str, object], prompts: np.ndarray, texts: np.ndarray
) -> bool:
    """Whether the model, given each whole text at once, would have chosen every token of it."""
    whole = jnp.asarray(np.concatenate([prompts, texts], axis=1))
    logits = jax.jit(lambda tokens: model.apply(variables, tokens))(whole)[:, prompts.shape[1] - 1 : -1, 14:]
    return bool((14 + jnp.argmax(logits, axis=-1) == texts).all())


if __name__ == "__main__":
    main()
