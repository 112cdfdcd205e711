"""Make the embedded sample's base model: seeded random weights of the `sample` preset, float16.

    python tools/make_base.py [OUT.safetensors]

The same file comes out on every machine and JAX version, up to the last bit of a normal deviate.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from needle.model import PRESETS, init_params, save_checkpoint
from needle.model.parameters import flatten, unflatten

SEED = 20
EMBEDDING_DEVIATION_RATIO = 3.3
MLP_OUTPUT = 3.0
DEFAULT_OUT = Path(__file__).parent.parent / "needle" / "data" / "sample" / "base.safetensors"


def main(arguments: list[str]) -> None:
    """Write the base, and say how large it is."""
    out = Path(arguments[0]) if arguments else DEFAULT_OUT
    config = PRESETS["sample"]
    fresh = flatten(jax.device_get(init_params(config, SEED)))
    signs = np.random.default_rng(SEED)
    flat = {name: adapted(name, leaf, signs).astype(np.float16) for name, leaf in fresh.items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    save_checkpoint(out, unflatten(flat), config, run={"stage": "random initialisation", "seed": SEED})
    count = sum(leaf.size for leaf in flat.values())
    print(f"{out.name}: {count:,} parameters, {out.stat().st_size:,} bytes")


def adapted(name: str, leaf: Any, signs: np.random.Generator) -> Any:
    """A leaf made fit for a base that stays frozen: an adapter can only use what is already there.

    With the usual embeddings no logit could pass 2.6, so no loss could fall below 4.4: larger ones let a
    token be predicted. The usual MLP starts near nothing; random signs and a large output make it a source
    of random features, which the adapter of the next layer learns to read.
    """
    if name == "embedding/embedding":
        return leaf * EMBEDDING_DEVIATION_RATIO
    if name.startswith("stack/") and name.endswith(("/d1", "/d2")):
        return np.where(signs.random(leaf.shape) < 0.5, -1.0, 1.0)
    if name.startswith("stack/") and name.endswith("/d3"):
        return np.full(leaf.shape, MLP_OUTPUT)
    return leaf


if __name__ == "__main__":
    main(sys.argv[1:])
