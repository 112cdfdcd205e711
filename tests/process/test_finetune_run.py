"""A fine-tuning run from its first event to its adapter, as the record tells it."""

from pathlib import Path

import numpy as np
import pytest

from needle.model.adapters import load_adapter
from needle.runs.record import RunFiles
from tests.process.finetune_kit import (
    GOLDEN,
    STEPS_PER_EPOCH,
    TOTAL_STEPS,
    events,
    log,
    make_run,
    metrics,
    the_end,
    train,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that went to its end."""
    directory = make_run(tmp_path_factory.mktemp("finished"))
    assert train(directory) == 0, log(directory)
    return directory


def test_it_says_finished_and_nothing_it_said_is_a_traceback(finished: Path) -> None:
    assert (the_end(finished)["outcome"], the_end(finished)["reason"]) == ("finished", "")
    assert "Traceback" not in log(finished)
    assert "Warning" not in log(finished)


def test_the_backend_is_told_first_and_the_phases_in_order(finished: Path) -> None:
    (backend,) = events(finished, "backend")
    assert {name: backend[name] for name in ("platform", "kernel", "precision")} == {
        "platform": "cpu",
        "kernel": "xla",
        "precision": "float32",
    }
    assert [event["phase"] for event in events(finished, "phase")] == ["compiling", "running"]
    (compiled,) = events(finished, "compiled")
    assert 0 < float(str(compiled["seconds"])) <= float(str(compiled["time"]))


def test_the_data_is_told_with_its_counts_and_shape(finished: Path) -> None:
    (data,) = events(finished, "data")
    assert (data["examples"], data["train"], data["validation"]) == (24, 18, 6)
    assert (data["skipped"], data["total"]) == ([], TOTAL_STEPS)
    assert int(str(data["rows"])) * int(str(data["length"])) > 0


def test_every_step_is_reported_once_with_where_its_time_went(finished: Path) -> None:
    lines = [line for line in metrics(finished) if "loss" in line]
    assert [line["step"] for line in lines] == list(range(1, TOTAL_STEPS + 1))
    for line in lines:
        assert {"lr", "grad_norm", "tokens", "tokens_per_s", "data_ms", "transfer_ms"} <= line.keys()
        assert 0 < float(str(line["compute_ms"])) <= float(str(line["step_ms"])) + 1e-3
    tokens = [int(str(line["tokens"])) for line in lines]
    assert tokens == sorted(tokens)
    assert lines[0]["lr"] == 0


def test_each_epoch_is_evaluated_and_saved(finished: Path) -> None:
    ends = [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH, TOTAL_STEPS]
    assert [event["step"] for event in events(finished, "evaluation")] == ends
    assert [line["step"] for line in metrics(finished) if "val_loss" in line] == ends
    assert [event["step"] for event in events(finished, "checkpoint")] == ends
    kept = sorted(path.name for path in RunFiles(finished).checkpoints.iterdir())
    assert kept == [f"step-{step:08d}" for step in ends[1:]]


def test_the_adapter_is_the_published_one_and_knows_where_it_came_from(finished: Path) -> None:
    (artifact,) = events(finished, "artifact")
    adapter = load_adapter(str(artifact["path"]))
    assert (adapter.rank, adapter.scale, adapter.seed) == (4, 2.0, 0)
    published = load_adapter(GOLDEN / "adapter_none.pkl")
    for path, pair in published.lora.items():
        for part, wanted in pair.items():
            error = np.linalg.norm(adapter.lora[path][part] - wanted) / np.linalg.norm(wanted)
            assert error < 1e-3, f"{path}/{part}"
