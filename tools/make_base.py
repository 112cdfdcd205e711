"""Make the embedded sample's base model: seeded random weights of the `sample` preset, float16.

    python tools/make_base.py [OUT.safetensors]

The same file comes out on every machine and JAX version, up to the last bit of a normal deviate.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from needle.model import PRESETS, init_params, save_checkpoint
from needle.model.parameters import flatten, unflatten

SEED = 20
DEFAULT_OUT = Path(__file__).parent.parent / "needle" / "data" / "sample" / "base.safetensors"


def main(arguments: list[str]) -> None:
    """Write the base, and say how large it is."""
    out = Path(arguments[0]) if arguments else DEFAULT_OUT
    config = PRESETS["sample"]
    flat = {name: np.asarray(leaf, np.float16) for name, leaf in flatten(init_params(config, SEED)).items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    save_checkpoint(out, unflatten(flat), config, run={"stage": "random initialisation", "seed": SEED})
    count = sum(leaf.size for leaf in flat.values())
    print(f"{out.name}: {count:,} parameters, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
