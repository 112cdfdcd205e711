"""Text from a model, token by token: what earlier tokens said to attention is kept, never computed again.

A batch of prompts is read at once, each padded behind its end to one length P. What is generated takes slots
P, P + 1, … in every row, so that one write serves all of them, while each row counts its own positions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from needle.data.markers import EOS_ID, PAD_ID, TURN_END_ID
from needle.model.architecture import SimpleAttentionNetwork
from needle.model.attention import attend
from needle.model.configuration import CONVOLUTION_TAPS, TransformerConfig
from needle.model.visibility import Visibility

Tokens = npt.NDArray[np.int32]
Logits = npt.NDArray[np.float32]
Pick = Callable[[int, Logits], int]
"""(row, logits (vocab,)) -> the next token of that row."""

_LENGTHS = (64, 128, 192, 256, 384, 512, 768, 1024)
_LONGER_STEP = 512
_UNSEEN = -1e30
STOPS = (EOS_ID, TURN_END_ID)


class Memory(NamedTuple):
    """Keys and values of all layers, each (L, B, K, S, head_dim): prompts in slots below P, then the rest."""

    key: jax.Array
    value: jax.Array


class DecodeState(NamedTuple):
    """What the next step needs of all before it.

    lengths (B,) of the prompts; window (B, W) the newest tokens, 0 before the start; first () the slot where
    generated tokens begin, step () how many of them were read.
    """

    memory: Memory
    lengths: jax.Array
    window: jax.Array
    first: jax.Array
    step: jax.Array


class Scores(NamedTuple):
    """What a model says of the next token: the best (B,) int32 and the logits (B, vocab) float32."""

    best: jax.Array
    logits: jax.Array


class Generated(NamedTuple):
    """A continuation without the token that ended it; `ended` is False when the limit came first."""

    tokens: list[int]
    ended: bool


@functools.lru_cache(maxsize=8)
def _compiled(model: SimpleAttentionNetwork, quant: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`read_prompts` and `decode_step` of one architecture, whatever its weights."""
    read = jax.jit(partial(read_prompts, model, quant=quant), static_argnames="room")
    return read, jax.jit(partial(decode_step, model, quant=quant), donate_argnums=1)


class Generator:
    """One model to generate with.

    Functions are compiled once for each shape of a batch, and serve every model of the same architecture.
    """

    def __init__(self, model: SimpleAttentionNetwork, variables: Any, *, quant: bool = False) -> None:
        """`variables` as `model.apply` takes them; `quant` rounds activations as the shipped model does."""
        self.config = model.config
        self._variables = jax.device_put(variables)
        self._read, self._step = _compiled(model, quant)

    def generate(
        self, prompts: Sequence[Sequence[int]], limit: int, pick: Pick | None = None
    ) -> list[Generated]:
        """Continue every prompt by at most `limit` tokens: the likeliest, or those that `pick` takes."""
        texts: list[list[int]] = [[] for _ in prompts]
        ended = [False] * len(prompts)
        for tokens in self.steps(prompts, limit, pick):
            for row, token in enumerate(tokens):
                if token in STOPS:
                    ended[row] = True
                elif token != PAD_ID:
                    texts[row].append(token)
        return [Generated(*text) for text in zip(texts, ended, strict=True)]

    def steps(
        self, prompts: Sequence[Sequence[int]], limit: int, pick: Pick | None = None
    ) -> Iterator[list[int]]:
        """The next token of every prompt, step by step; padding for one that ended with an earlier step."""
        tokens, lengths = padded(prompts)
        state, scores = self._read(self._variables, tokens, lengths, room=limit)
        going = np.ones(len(prompts), bool)
        for number in range(limit):
            chosen = np.where(going, self._choose(scores, going, pick), PAD_ID).astype(np.int32)
            yield [int(token) for token in chosen]
            going &= ~np.isin(chosen, (*STOPS, PAD_ID))
            if not going.any() or number + 1 == limit:
                return
            state, scores = self._step(self._variables, state, chosen)

    def _choose(self, scores: Scores, going: npt.NDArray[np.bool_], pick: Pick | None) -> Tokens:
        if pick is None:
            return np.asarray(scores.best)
        logits = np.asarray(scores.logits)
        picked = [pick(row, logits[row]) if going[row] else PAD_ID for row in range(len(logits))]
        return np.array(picked, np.int32)


def padded(prompts: Sequence[Sequence[int]]) -> tuple[Tokens, Tokens]:
    """tokens (B, P) padded behind each prompt, and lengths (B,); P is one of few, for few to be compiled."""
    longest = max(len(prompt) for prompt in prompts)
    tokens = np.full((len(prompts), padded_length(longest)), PAD_ID, np.int32)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = prompt
    return tokens, np.array([len(prompt) for prompt in prompts], np.int32)


def padded_length(length: int) -> int:
    """The length that prompts of at most `length` tokens are padded to."""
    fitting = [one for one in _LENGTHS if one >= length]
    return fitting[0] if fitting else -(-length // _LONGER_STEP) * _LONGER_STEP


def read_prompts(
    model: SimpleAttentionNetwork, variables: Any, tokens: jax.Array, lengths: jax.Array, *, room: int,
    quant: bool = False,
) -> tuple[DecodeState, Scores]:  # fmt: skip
    """Read whole prompts, tokens (B, P) with lengths (B,), leaving memory for `room` tokens more.

    Padding lies behind the text, where no token of it looks.
    """
    batch, length = tokens.shape
    memory = empty_memory(model, batch, length + room)

    def attend_within(
        query: jax.Array, key: jax.Array, value: jax.Array, memory: Memory, layer: Any
    ) -> tuple[jax.Array, Memory]:
        attended = attend(query, key, value, kernel=model.execution.kernel, visibility=Visibility())
        return attended, _written(memory, key, value, layer, 0)

    positions = jnp.arange(length)
    segments = (positions < lengths[:, None]).astype(jnp.int32)
    hidden, memory = model.apply(
        variables, tokens, tokens, segments, positions, attend_within, memory, quant, method="remembering"
    )
    last = jnp.take_along_axis(hidden, (lengths - 1)[:, None, None], axis=1)[:, 0]
    newest = lengths[:, None] - _window_length(model.config) + jnp.arange(_window_length(model.config))
    window = jnp.take_along_axis(tokens, jnp.maximum(newest, 0), axis=1)
    window = jnp.where(newest >= 0, window, PAD_ID)
    first, step = jnp.asarray(length, jnp.int32), jnp.asarray(0, jnp.int32)
    state = DecodeState(memory, jnp.asarray(lengths, jnp.int32), window, first, step)
    return state, _scores(model, variables, last, quant)


def decode_step(
    model: SimpleAttentionNetwork, variables: Any, state: DecodeState, tokens: jax.Array, *,
    quant: bool = False,
) -> tuple[DecodeState, Scores]:  # fmt: skip
    """Read one more token of every row, tokens (B,); `state` may be donated."""
    window = jnp.concatenate([state.window[:, 1:], tokens[:, None]], axis=1)
    positions = (state.lengths + state.step)[:, None]
    segments = (jnp.arange(window.shape[1])[::-1] <= positions).astype(jnp.int32)

    def attend_back(
        query: jax.Array, key: jax.Array, value: jax.Array, memory: Memory, layer: Any
    ) -> tuple[jax.Array, Memory]:
        newest = state.first + state.step
        memory = _written(memory, key, value, layer, newest)
        slots = jnp.arange(memory.key.shape[3])
        seen = (slots < state.lengths[:, None]) | ((slots >= state.first) & (slots <= newest))
        return _attend_one(query, memory.key[layer], memory.value[layer], seen), memory

    hidden, memory = model.apply(
        variables, tokens[:, None], window, segments, positions, attend_back, state.memory, quant,
        method="remembering",
    )  # fmt: skip
    state = state._replace(memory=memory, window=window, step=state.step + 1)
    return state, _scores(model, variables, hidden[:, 0], quant)


def empty_memory(model: SimpleAttentionNetwork, batch: int, slots: int) -> Memory:
    """Room for the keys and values of `slots` tokens in each of `batch` rows."""
    config = model.config
    shape = (config.num_layers, batch, config.num_kv_heads, slots, config.head_dim)
    zeros = partial(jnp.zeros, shape, jnp.dtype(model.execution.dtype))
    return Memory(zeros(), zeros())


def _written(memory: Memory, key: jax.Array, value: jax.Array, layer: Any, slot: Any) -> Memory:
    """The memory with key and value (B, T, K, head_dim) of one layer in it, from a slot on."""

    def write(kept: jax.Array, new: jax.Array) -> jax.Array:
        new = new.swapaxes(1, 2)[None].astype(kept.dtype)
        return jax.lax.dynamic_update_slice(kept, new, (layer, 0, 0, slot, 0))

    return Memory(write(memory.key, key), write(memory.value, value))


def _attend_one(query: jax.Array, key: jax.Array, value: jax.Array, seen: jax.Array) -> jax.Array:
    """One query (B, 1, H, head_dim) over keys and values (B, K, S, head_dim), where seen (B, S)."""
    batch, _, heads, head_dim = query.shape
    kv_heads = key.shape[1]
    rows = query.reshape(batch, kv_heads, heads // kv_heads, head_dim) / math.sqrt(head_dim)
    scores = jnp.matmul(rows, key.swapaxes(-1, -2), preferred_element_type=jnp.float32)
    scores = jnp.where(seen[:, None, None], scores, _UNSEEN)
    weights = jax.nn.softmax(scores, axis=-1).astype(value.dtype)
    return (weights @ value).reshape(query.shape)


def _scores(model: SimpleAttentionNetwork, variables: Any, hidden: jax.Array, quant: bool) -> Scores:
    logits = model.apply(variables, hidden, quant, method="project")
    return Scores(jnp.argmax(logits, axis=-1).astype(jnp.int32), logits)


def _window_length(config: TransformerConfig) -> int:
    """As many tokens as the engrams of the newest one look back on, itself included."""
    order = max(config.engram_orders, default=1)
    return (CONVOLUTION_TAPS - 1) * order + order
