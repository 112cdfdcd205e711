"""Best and last: which adapter a run ends with, and when it ends before its last step."""

import re
from pathlib import Path

import pytest

from needle.model.adapters import load_adapter
from tests.process.finetune_kit import GOLDEN, events, log, losses, make_run, metrics, the_end, train

HIGH_LR = {"lr": 1.0, "lora_alpha": 60_000, "epochs": 8, "eval_every": 2}


@pytest.fixture(scope="module")
def overfitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that gets worse soon: at such a learning rate the validation loss rises."""
    directory = make_run(tmp_path_factory.mktemp("best"), lora_targets="out,v", patience=3, **HIGH_LR)
    assert train(directory) == 0, log(directory)
    return directory


def validation_losses(directory: Path) -> dict[int, float]:
    return {
        int(str(line["step"])): float(str(line["val_loss"]))
        for line in metrics(directory)
        if "val_loss" in line
    }


def test_it_ends_when_patience_does_and_says_so(overfitted: Path) -> None:
    told = validation_losses(overfitted)
    best = min(told, key=told.__getitem__)
    assert max(told) == best + 6
    assert max(losses(overfitted)) == best + 6 < 40
    end = the_end(overfitted)
    assert end["outcome"] == "finished"
    assert f"stopped early after step {best + 6} of 40" in str(end["reason"])
    assert f"of step {best}" in str(end["reason"])


def test_the_result_is_the_best_adapter_and_the_last_lies_beside_it(overfitted: Path) -> None:
    told = validation_losses(overfitted)
    best = min(told, key=told.__getitem__)
    last, kept = events(overfitted, "artifact")
    assert (last["path"], last["step"]) == ("artifacts/adapter-last.safetensors", max(told))
    assert (kept["path"], kept["step"]) == ("artifacts/adapter.safetensors", best)
    adapters = {name: load_adapter(overfitted / "artifacts" / f"{name}.safetensors") for name in NAMES}
    assert {name: one.step for name, one in adapters.items()} == dict(
        zip(NAMES, (best, best, max(told)), strict=True)
    )
    assert adapters["adapter"].val_loss == pytest.approx(told[best])


NAMES = ("adapter", "adapter-best", "adapter-last")


def test_the_lowest_losses_are_marked_as_they_come(overfitted: Path) -> None:
    lowest = float("inf")
    for event in events(overfitted, "evaluation"):
        loss = float(str(event["val_loss"]))
        assert event["best"] is (loss < lowest)
        lowest = min(lowest, loss)


def test_an_attempt_that_finds_its_patience_over_ends_at_once(overfitted: Path) -> None:
    before = losses(overfitted)
    assert train(overfitted, attempt=2) == 0, log(overfitted)
    assert losses(overfitted) == before
    assert "stopped early" in str(the_end(overfitted, attempt=2)["reason"])


def test_only_the_named_kernels_are_trained_and_it_says_so(overfitted: Path) -> None:
    adapter = load_adapter(overfitted / "artifacts" / "adapter.safetensors")
    assert [path.split("/")[-2] for path in adapter.lora] == ["out_proj", "v_proj"]
    (trained,) = events(overfitted, "trained", attempt=1)
    assert trained["kernels"] == ["out_proj", "v_proj"]
    assert trained["parameters"] == sum(
        matrix.size for pair in adapter.lora.values() for matrix in pair.values()
    )


def test_in_pieces_the_losses_are_the_published_ones_and_the_last_adapter_can_be_kept(tmp_path: Path) -> None:
    text = (GOLDEN / "trajectory_none.txt").read_text()
    published = [float(loss) for loss in re.findall(r"step +\d+/15 +loss ([\d.]+)", text)]
    directory = make_run(tmp_path, qat="none", micro_batch_size=2, keep="last")
    assert train(directory) == 0, log(directory)
    assert list(losses(directory).values()) == pytest.approx(published, abs=5e-4)
    kept = events(directory, "artifact")[-1]
    assert (kept["path"], kept["step"]) == ("artifacts/adapter.safetensors", 15)
