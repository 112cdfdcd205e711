"""Which token comes next: the best of those that an answer may go on with, or one drawn at a temperature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from needle.data.grammar import State, advance, answer_rule, closing, start
from needle.data.markers import EOS_ID
from needle.data.tokenizer import Tokenizer
from needle.model.decode import Logits

Symbols = Sequence["tuple[int, ...] | None"]
"""What each token says, as `Tokenizer.symbols` gives it."""


class Sampler:
    """A `Pick`: the likeliest token at temperature 0, else one drawn; the same for the same seed."""

    def __init__(self, temperature: float = 0.0, seed: int = 0) -> None:
        self._temperature = temperature
        self._random = np.random.default_rng(seed)

    def __call__(self, row: int, logits: Logits) -> int:
        """The next token of a row."""
        return int(np.argmax(self.ranked(logits)))

    def ranked(self, logits: Logits) -> Logits:
        """Scores by which the highest is the one to take, of all tokens or of any part of them.

        With Gumbel noise added, the highest of a part is a draw from the distribution over that part.
        """
        if self._temperature <= 0:
            return logits
        noise = self._random.gumbel(size=logits.shape)
        ranked: Logits = (logits / self._temperature + noise).astype(np.float32)
        return ranked


def held_to(tools: Sequence[str], tokenizer: Tokenizer, limit: int, sampler: Sampler) -> Constrained:
    """What picks tokens of answers, a row for each list of tools in canonical JSON."""
    states = [start(answer_rule(declared)) for declared in tools]
    return Constrained(states, tokenizer.symbols, limit, sampler)


class Constrained:
    """A `Pick` that holds every row to its grammar, and brings it to its end within `limit` tokens.

    A token is taken only if what would close the text after it still fits, one token a symbol: so an answer
    is whole unless the limit is shorter than the shortest answer.
    """

    def __init__(self, states: Sequence[State], symbols: Symbols, limit: int, sampler: Sampler) -> None:
        self._states = list(states)
        self._left = [max(limit, len(closing(state))) for state in states]
        self._symbols, self._sampler = symbols, sampler

    def __call__(self, row: int, logits: Logits) -> int:
        """The best token that the row may go on with."""
        ranked = self._sampler.ranked(logits)
        self._left[row] -= 1
        best = int(np.argmax(ranked))
        if self._accepts(row, best):
            return best
        for token in np.argsort(-ranked):
            if self._accepts(row, int(token)):
                return int(token)
        return EOS_ID

    def _accepts(self, row: int, token: int) -> bool:
        """Whether a token may follow; if so it is taken."""
        said = self._symbols[token] if token < len(self._symbols) else None
        state = self._states[row]
        for symbol in said or ():
            state = advance(state, symbol)
        if not said or not state or len(closing(state)) > self._left[row]:
            return False
        self._states[row] = state
        return True
