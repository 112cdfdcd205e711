"""A fine-tuning run from its first event to its adapter, unbroken and in pieces, as the record tells it."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from needle.model.adapters import load_adapter
from needle.runs.record import RunFiles, read_request, write_json
from tests.process.finetune_kit import (
    GOLDEN,
    STEPS_PER_EPOCH,
    TOTAL_STEPS,
    artifact_of,
    events,
    log,
    losses,
    make_run,
    metrics,
    request,
    the_end,
    train,
    trainer,
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
    assert artifact["path"] == "artifacts/adapter.safetensors"
    adapter = load_adapter(artifact_of(finished))
    assert (adapter.rank, adapter.scale, adapter.seed) == (4, 2.0, 0)
    published = load_adapter(GOLDEN / "adapter_none.pkl")
    for path, pair in published.lora.items():
        for part, wanted in pair.items():
            error = np.linalg.norm(adapter.lora[path][part] - wanted) / np.linalg.norm(wanted)
            assert error < 1e-3, f"{path}/{part}"


def test_killed_and_stopped_and_resumed_it_gives_the_losses_of_the_unbroken_run(
    finished: Path, tmp_path: Path, wait_for: Callable[..., None]
) -> None:
    out = tmp_path / "out.safetensors"
    broken = make_run(tmp_path, out=str(out))

    with trainer(broken, attempt=1) as process:
        wait_for(lambda: events(broken, "checkpoint"), "the first epoch's checkpoint", 120)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not events(broken, "end")

    with trainer(broken, attempt=2) as process:
        wait_for(lambda: events(broken, "phase", attempt=2)[1:], "the second attempt running", 120)
        request(broken, "stop")
        assert process.wait(timeout=60) == 0
    assert the_end(broken, attempt=2)["outcome"] == "stopped"
    assert "the adapter is saved" in str(the_end(broken, attempt=2)["reason"])
    assert load_adapter(out).rank == 4

    RunFiles(broken).stop_request.unlink()
    assert train(broken, attempt=3) == 0, log(broken)
    assert the_end(broken, attempt=3)["outcome"] == "finished"
    assert losses(broken) == losses(finished)
    unbroken = load_adapter(artifact_of(finished)).lora
    for path, pair in load_adapter(out).lora.items():
        for part, matrix in pair.items():
            np.testing.assert_array_equal(matrix, unbroken[path][part])
    resumed = [int(str(event["step"])) for event in events(broken, "resumed")]
    assert STEPS_PER_EPOCH <= resumed[0] < resumed[1] <= TOTAL_STEPS


def test_it_does_not_resume_from_a_data_file_that_changed(finished: Path, tmp_path: Path) -> None:
    data, directory = tmp_path / "data.jsonl", tmp_path / "run"
    data.write_text((GOLDEN / "train24.jsonl").read_text().replace("Set ", "Put "))
    shutil.copytree(finished, directory)
    request_of = read_request(directory)
    settings = {**request_of.settings, "data": str(data)}
    write_json(RunFiles(directory).request, msgspec.structs.replace(request_of, settings=settings))
    assert train(directory, attempt=2) == 1
    assert "cannot resume: the data changed since step 15" in str(the_end(directory, attempt=2)["reason"])
    assert not [line for line in metrics(directory) if line["attempt"] == 2]
