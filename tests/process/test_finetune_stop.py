"""Stopping and failing, with real processes and real signals."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from needle.model.adapters import load_adapter
from needle.runs.record import RunFiles
from tests.process.finetune_kit import (
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

WaitFor = Callable[..., None]
START_S = 120


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_finishes_the_step_saves_and_ends_well(
    tmp_path: Path, wait_for: WaitFor, number: signal.Signals
) -> None:
    directory = make_run(tmp_path, epochs=500, val_split=0)
    with trainer(directory) as process:
        wait_for(lambda: len(metrics(directory)) >= 2, "a few steps", START_S)
        process.send_signal(number)
        assert process.wait(timeout=60) == 0, log(directory)
    end, last = the_end(directory), metrics(directory)[-1]
    assert end["outcome"] == "stopped"
    assert f"after step {last['step']} of" in str(end["reason"])
    assert events(directory, "checkpoint")[-1]["step"] == last["step"]
    assert load_adapter(artifact_of(directory)).rank == 4


def test_a_second_signal_ends_at_once_and_is_told(tmp_path: Path, wait_for: WaitFor) -> None:
    directory = make_run(tmp_path, epochs=500, val_split=0)
    with trainer(directory, program=HANGING) as process:
        wait_for(lambda: "hanging" in log(directory), "a step that hangs", START_S)
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: "signal heard" in log(directory), "the first signal")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 130
    assert "ended at once by a second SIGTERM" in str(the_end(directory)["reason"])


HANGING = """
import sys, threading
from needle.train import __main__, stop
heard = stop.StopSignal
class Telling(heard):
    @property
    def received(self): return self.__dict__.get("name", "")
    @received.setter
    def received(self, name):
        self.__dict__["name"] = name
        if name: print("signal heard", flush=True)
__main__.StopSignal = Telling
import needle.train.finetune as finetune
def hang(session, program):
    print("hanging", flush=True)
    threading.Event().wait()
finetune._work = hang
sys.exit(__main__.main(sys.argv[1:]))
"""


def test_a_stop_while_compiling_is_heard_before_the_compiler_is_done(
    tmp_path: Path, wait_for: WaitFor
) -> None:
    directory = make_run(tmp_path)
    with trainer(directory) as process:
        wait_for(lambda: events(directory, "phase"), "compiling", START_S)
        request(directory, "stop")
        assert process.wait(timeout=60) == 0
    assert the_end(directory)["outcome"] == "stopped"
    assert the_end(directory)["reason"] == "stopped while compiling, before the first step"
    assert not events(directory, "compiled")
    assert not events(directory, "artifact")


def test_a_checkpoint_request_is_met_between_epochs_and_training_goes_on(
    tmp_path: Path, wait_for: WaitFor
) -> None:
    directory = make_run(tmp_path, epochs=100, batch_size=1, val_split=0)
    with trainer(directory) as process:
        wait_for(lambda: metrics(directory), "the first step", START_S)
        request(directory, "checkpoint")
        wait_for(lambda: events(directory, "checkpoint"), "a checkpoint")
        seen = len(metrics(directory))
        wait_for(lambda: len(metrics(directory)) > seen, "more steps")
        process.kill()
    assert int(str(events(directory, "checkpoint")[0]["step"])) % 24 != 0
    assert not RunFiles(directory).checkpoint_request.exists()


POISONED = """
import sys
import jax.numpy as jnp
from needle.train import program
make = program.make_loss_sums
def poisoned(*recipe):
    sums = make(*recipe)
    def loss_sums(adapter, base, batch):
        total, count = sums(adapter, base, batch)
        return jnp.where(jnp.any(batch.tokens == POISON), jnp.nan, total), count
    return loss_sums
program.make_loss_sums = poisoned
from needle.train.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_loss_that_is_no_number_ends_the_run_and_the_adapter_before_it_is_kept(tmp_path: Path) -> None:
    poison, line, step = rare_token()
    directory = make_run(tmp_path)
    assert train(directory, program=POISONED.replace("POISON", str(poison))) == 1
    (nonfinite,) = events(directory, "nonfinite")
    assert (nonfinite["step"], nonfinite["loss"]) == (step, "NaN")
    assert line in nonfinite["lines"]  # type: ignore[operator]
    end = the_end(directory)
    assert end["outcome"] == "failed"
    assert f"the loss became NaN at step {step}, on the examples of lines" in str(end["reason"])
    assert "lower --lr" in str(end["reason"])
    assert "Traceback" not in log(directory)
    assert list(losses(directory)) == list(range(1, step + 1))
    assert events(directory, "checkpoint")[-1]["step"] == step - 1
    assert load_adapter(artifact_of(directory)).rank == 4


def rare_token() -> tuple[int, int, int]:
    """(a token of one training example only, that example's line, the step that first sees it)."""
    from needle.config import FinetuneSettings
    from needle.train.inputs import read_inputs
    from tests.process.finetune_kit import SETTINGS

    batches = read_inputs(FinetuneSettings(**SETTINGS)).batches  # type: ignore[arg-type]
    lines_of: dict[int, set[int]] = {}
    for example in batches.examples:
        for token in {int(token) for token in example.tokens}:
            lines_of.setdefault(token, set()).add(example.line)
    for step in (3, 2, 1):
        for token, lines in lines_of.items():
            if len(lines) == 1 and next(iter(lines)) in batches.lines(step):
                return token, next(iter(lines)), step + 1
    raise AssertionError("the golden data has no such token")


def test_another_backend_than_planned_trains_nothing(tmp_path: Path) -> None:
    directory = make_run(tmp_path, backend="cuda")
    assert train(directory) == 1
    assert "planned for cuda, but JAX came up on cpu" in str(the_end(directory)["reason"])
    assert not metrics(directory)
    assert "Traceback" not in log(directory)


def test_an_adapter_that_exists_is_never_overwritten_unasked(tmp_path: Path) -> None:
    out = tmp_path / "mine.safetensors"
    out.write_text("precious")
    directory = make_run(tmp_path, out=str(out))
    assert train(directory) == 2
    assert "already exists" in str(the_end(directory)["reason"])
    assert train(directory, attempt=2) == 0, "a resumed run cannot choose another name, so it goes on"
    assert out.read_text() == "precious"
    assert artifact_of(directory) == str(directory / "artifacts" / "adapter.safetensors")


def test_a_data_file_that_vanished_is_told_in_words(tmp_path: Path) -> None:
    directory = make_run(tmp_path, data=str(tmp_path / "gone.jsonl"))
    assert train(directory) == 2
    assert "gone.jsonl" in str(the_end(directory)["reason"])
    assert "Traceback" not in log(directory)


def test_without_its_run_directory_it_says_how_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "log.txt").touch()
    assert train(tmp_path) == 2
    assert "is not a run directory" in log(tmp_path)
    assert os.listdir(tmp_path) == ["log.txt"]
