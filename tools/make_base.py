"""Make the embedded base of what `tools.train_base` reached: its weights as float16.

python -m tools.make_base TRAINED.safetensors [OUT.safetensors]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from needle.data.sample import sample_base
from needle.errors import InputError
from needle.model import PRESETS, save_checkpoint
from needle.model.checkpoints import read_checkpoint
from needle.model.parameters import unflatten
from tools.train_base import SEED

STAGE = "trained from scratch on made-up tools"


def main(arguments: list[str]) -> None:
    """Write the base, and say how large it is."""
    out = Path(arguments[1]) if len(arguments) > 1 else sample_base()
    trained = read_checkpoint(arguments[0])
    if trained.config != PRESETS["sample"]:
        raise InputError("is not of the sample's geometry", where=arguments[0])
    flat = {name: leaf.astype(np.float16) for name, leaf in trained.flat.items()}
    run = {"stage": STAGE, "seed": SEED, "steps": trained.run.get("steps", 0)}
    save_checkpoint(out, unflatten(flat), trained.config, run=run)
    count = sum(leaf.size for leaf in flat.values())
    print(f"{out.name}: {count:,} parameters, {out.stat().st_size:,} bytes, {run['steps']:,} steps")


if __name__ == "__main__":
    main(sys.argv[1:])
