"""The settings that the embedded sample is trained with; light enough for a first paint to wait for."""

from __future__ import annotations

from needle.config import FinetuneSettings
from needle.data.locate import SAMPLE


def sample_settings() -> FinetuneSettings:
    """Settings that show learning within a minute on two cores, from what comes with the package."""
    return FinetuneSettings(name="sample", data=SAMPLE, checkpoint=SAMPLE, epochs=10, lr=3e-3)
