"""The embedded sample: enough to see a model learn on a machine that has nothing else yet."""

from __future__ import annotations

from pathlib import Path


def sample_directory() -> Path:
    """Where `train.jsonl`, `heldout.jsonl`, `tokenizer.model` and `base.safetensors` of the sample are.

    Made by `tools/make_sample.py` and `tools/make_base.py`.
    """
    return Path(__file__).parent / "sample"


def sample_base() -> Path:
    """The sample's small base model, trained from scratch on made-up and everyday tools."""
    return sample_directory() / "base.safetensors"
