"""Train the embedded base from scratch: `python -m tools.train_base --minutes 60 --work DIRECTORY`.

Every weight is trained, on examples that are made up as they are needed, so that none is seen twice. What
is reached is saved every few minutes in the working directory and goes on from there; `tools.make_base` makes
the embedded file of it. The order of examples and the first weights follow from the seed; the number of steps
that fit in the minutes does not.

The embedded base was made in two parts on two shared cores: 60 minutes on made-up tools alone, 9,500 steps;
then 48 minutes from there with everyday tools too, to 13,749 steps.
"""

from __future__ import annotations

import argparse
import queue
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax.contrib import MuonDimensionNumbers, muon

from needle.data.packing import PackedBatch, Shape, pack_all
from needle.data.parsing import parse_example
from needle.data.tokenizer import TokenizedExample, Tokenizer, tokenize
from needle.model import PRESETS, SimpleAttentionNetwork, init_params, load_checkpoint, save_checkpoint
from needle.model.architecture import Execution
from needle.model.bitmap import parse_bit_map
from needle.model.fake_quantise import fake_quantised_params
from needle.model.parameters import flatten, unflatten
from tools.base_rows import Novelty, example_rows

SEED = 20
SHAPE = Shape(4, 512)
"""Small batches: on two cores they are 1.4 times as fast a token as batches of sixteen rows."""
PROMPT_WEIGHT = 0.1
"""What a token of the prompt counts: reading is learned faster by one who also has to guess."""
SAVE_EVERY_S = 120.0
MUON_RATE, ADAM_RATE, RISE_STEPS = 0.015, 2e-3, 200
EVERYDAY_SHARE = 0.5
"""Part of the examples that are of everyday tools; the others are of tools that nobody has."""
QUANTISED_SHARE = 0.15
"""The last part of the training is done on weights rounded to 4 bits, as they ship."""


class Batch(NamedTuple):
    """tokens, segments (R, T) int32; weights (R, T) float32: what predicting each token counts."""

    tokens: np.ndarray
    segments: np.ndarray
    weights: np.ndarray


def main() -> None:
    """Train for the minutes given, then say where the weights are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60, help="the rate has fallen to nothing by then")
    parser.add_argument("--steps", type=int, default=9000, help="or after this many steps, if that is sooner")
    parser.add_argument("--work", type=Path, required=True, help="where weights are kept while training")
    parser.add_argument("--tokenizer", type=Path, required=True)
    options = parser.parse_args()
    tokenizer = Tokenizer.load(options.tokenizer)
    trainer = Trainer(options.steps, options.work)
    trainer.run(batches(tokenizer, trainer.step), 60 * options.minutes)


def batches(tokenizer: Tokenizer, first_step: int) -> Iterator[Batch]:
    """Batches without end, made in a thread of their own a few ahead."""
    ready: queue.Queue[Batch] = queue.Queue(8)

    def make() -> None:
        rows = example_rows(SEED + 1000 * first_step, everyday_share=EVERYDAY_SHARE)
        held: list[TokenizedExample] = []
        while True:
            while sum(map(len, held)) < 0.94 * SHAPE.rows * SHAPE.length:
                example = tokenize(parse_example(next(rows), len(held) + 1).example, tokenizer)
                if len(example) <= SHAPE.length:
                    held.append(example)
            packed = pack_all(held, SHAPE)
            ready.put(_batch(packed[0]))
            held = []

    threading.Thread(target=make, daemon=True).start()
    while True:
        yield ready.get()


def _batch(packed: PackedBatch) -> Batch:
    weights = np.where(packed.target_mask, 1.0, PROMPT_WEIGHT) * (packed.segments > 0)
    first = (
        np.diff(packed.segments, axis=1, prepend=0) != 0
    )  # nothing before it tells what an example begins with
    return Batch(packed.tokens, packed.segments, np.where(first, 0.0, weights).astype(np.float32))


class Trainer:
    """The weights, their optimiser and how far they are."""

    def __init__(self, total_steps: int, work: Path) -> None:
        self._config = PRESETS["sample"]
        self._work, self._total = work, total_steps
        self._file = work / "base.safetensors"
        self.step, self._began = 0, 0.0
        params: Any = flatten(jax.device_get(init_params(self._config, SEED)))
        if self._file.exists():
            found, _ = load_checkpoint(self._file)
            params = flatten(found)
            self.step = int((work / "step").read_text())
            self._began = self.step / total_steps
        self._params = {name: jnp.asarray(leaf, jnp.float32) for name, leaf in params.items()}
        self._transform = optimiser()
        self._moments = self._transform.init(self._params)

    def run(self, stream: Iterator[Batch], seconds: float) -> None:
        """Train until the steps or the seconds are used up."""
        network = SimpleAttentionNetwork(self._config, Execution(remat=True))
        update = {
            quantised: jax.jit(
                partial(train_step, network=network, transform=self._transform, quantised=quantised),
                donate_argnums=(0, 1),
            )
            for quantised in (False, True)
        }
        began = saved_at = time.monotonic()
        first, losses = self.step, []
        while (progress := self._progress((time.monotonic() - began) / seconds)) < 1:
            share = np.float32(min(1 - progress, (self.step - first + 1) / RISE_STEPS))
            self._params, self._moments, loss = update[progress > 1 - QUANTISED_SHARE](
                self._params, self._moments, next(stream), share
            )
            self.step += 1
            losses.append(loss)
            if self.step % 50 == 0:
                pace = (time.monotonic() - began) / (self.step - first)
                mean = float(np.mean(jax.device_get(losses)))
                print(f"step {self.step} loss {mean:.4f} {1e3 * pace:.0f} ms {progress:.1%}", flush=True)
                losses.clear()
            if time.monotonic() - saved_at > SAVE_EVERY_S:
                self.save()
                saved_at = time.monotonic()
        self.save()

    def _progress(self, time_used: float) -> float:
        """Part of the whole training that is done, by steps or by time, whichever is further."""
        return max(self.step / self._total, self._began + (1 - self._began) * time_used)

    def save(self) -> None:
        """Keep the weights; the optimiser warms up anew when they are taken up again."""
        self._work.mkdir(parents=True, exist_ok=True)
        leaves = {name: np.asarray(leaf) for name, leaf in self._params.items()}
        save_checkpoint(self._file, unflatten(leaves), self._config, run={"seed": SEED, "steps": self.step})
        (self._work / "step").write_text(str(self.step))


def optimiser() -> optax.GradientTransformation:
    """Muon for matrices, Adam for the rest, at their highest rates; the caller scales what they give."""
    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.multi_transform(
            {
                "muon": muon(MUON_RATE, muon_weight_dimension_numbers=_axes),
                "adam": optax.adam(ADAM_RATE, b2=0.98),
            },
            lambda params: {name: "muon" if is_matrix(name) else "adam" for name in params},
        ),
    )


def is_matrix(name: str) -> bool:
    """Whether a leaf turns vectors into vectors; tables and vectors do not."""
    return name.endswith("/kernel")


def _axes(params: Any) -> Any:
    return jax.tree.map(lambda leaf: MuonDimensionNumbers(leaf.ndim - 2, leaf.ndim - 1), params)


def train_step(
    params: Any, moments: Any, batch: Batch, share: np.float32, *, network: SimpleAttentionNetwork,
    transform: optax.GradientTransformation, quantised: bool,
) -> tuple[Any, Any, jax.Array]:  # fmt: skip
    """One update of every weight by a share of the rates; returns the mean loss of the answers' tokens."""

    def loss(flat: Any) -> tuple[jax.Array, jax.Array]:
        tree = unflatten(flat)
        if quantised:
            tree = fake_quantised_params(tree, parse_bit_map("default=4"))
        logits = network.apply({"params": tree}, batch.tokens, None, quantised, batch.segments)[:, :-1]
        entropies = optax.softmax_cross_entropy_with_integer_labels(logits, batch.tokens[:, 1:])
        weights = batch.weights[:, 1:]
        answers = weights >= 1.0
        return jnp.sum(entropies * weights) / jnp.sum(weights), jnp.sum(entropies * answers) / jnp.sum(
            answers
        )

    (_, shown), gradient = jax.value_and_grad(loss, has_aux=True)(params)
    updates, moments = transform.update(gradient, moments, params)
    updates = jax.tree.map(lambda update: share * update, updates)
    return optax.apply_updates(params, updates), moments, shown


def held_out_rows(count: int) -> dict[str, list[Any]]:
    """Examples of the kinds that are measured, half of them of everyday tools.

    As in training, new ways to ask, new tools, both; none was trained on, but for everyday talk.
    """
    kinds = {
        "as trained": Novelty(),
        "new phrasings": Novelty(phrasing=True),
        "new tools": Novelty(tools=True),
        "new tools and phrasings": Novelty(tools=True, phrasing=True),
    }

    def rows_of(at: int, kind: Novelty) -> Iterator[Any]:
        return example_rows(SEED + 1 + at, kind, everyday_share=EVERYDAY_SHARE)

    return {
        name: [row for row, _ in zip(rows_of(at, kind), range(count), strict=False)]
        for at, (name, kind) in enumerate(kinds.items())
    }


if __name__ == "__main__":
    main()
