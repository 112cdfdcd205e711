"""The best adapter so far: what is kept, taken up again, and when waiting for a better one ends."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from needle.model.adapters import AdapterFile, load_adapter
from needle.train.best import BestAdapter


def adapter(step: int, val_loss: float) -> AdapterFile:
    pair = {"A": np.full((1, 2, 1), step, np.float32), "B": np.ones((1, 1, 2), np.float32)}
    return AdapterFile({"a/kernel": pair}, 2.0, "tiny", 1, 0, step=step, val_loss=val_loss)


@pytest.fixture
def best(tmp_path: Path) -> BestAdapter:
    return BestAdapter(tmp_path / "best.safetensors", every=10, patience=2)


def test_only_a_lower_loss_replaces_what_is_on_disk(best: BestAdapter) -> None:
    told = [best.consider(adapter(10 * n, loss)) for n, loss in enumerate((3.0, 2.0, 2.0, 2.5, 1.0), 1)]
    assert told == [True, True, False, False, True]
    kept = load_adapter(best.path)
    assert (kept.step, kept.val_loss, kept.lora["a/kernel"]["A"][0, 0, 0]) == (50, 1.0, 50)


def test_a_loss_that_is_no_number_is_never_the_best(best: BestAdapter) -> None:
    assert not best.consider(adapter(10, math.nan))
    assert not best.path.exists()
    assert best.consider(adapter(20, 5.0))
    assert not best.consider(adapter(30, math.inf))


def test_patience_counts_the_losses_since_the_lowest(best: BestAdapter) -> None:
    best.consider(adapter(10, 1.0))
    given_up = {}
    for step, loss in ((20, 2.0), (30, 0.5), (40, 0.6), (50, 0.7)):
        best.consider(adapter(step, loss))
        given_up[step] = best.is_given_up(step)
    assert given_up == {20: False, 30: False, 40: False, 50: True}
    assert not dataclasses.replace(best, patience=0).is_given_up(1000)


def test_losses_that_are_never_numbers_end_the_patience_too(best: BestAdapter) -> None:
    assert [best.is_given_up(step) for step in (0, 10, 19, 20)] == [False, False, False, True]


def test_a_later_attempt_takes_up_what_was_kept_but_not_from_its_own_future(best: BestAdapter) -> None:
    best.consider(adapter(30, 1.0))
    again = BestAdapter(best.path, 10, 2)
    again.restore(20)
    assert again.adapter is None
    again.restore(30)
    assert again.adapter is not None
    assert again.adapter.val_loss == 1.0
    assert not again.consider(adapter(40, 1.5))


def test_a_damaged_or_missing_file_is_no_best(best: BestAdapter) -> None:
    best.restore(100)
    best.path.write_bytes(b"nonsense")
    best.restore(100)
    assert best.adapter is None
