"""A checkpoint that cannot be written is told, and costs nothing else."""

from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp

from needle.runs.events import parse_events
from needle.runs.writer import RunWriter
from needle.train.finetune import _save
from needle.train.optimizer import make_optimizer
from needle.train.recorder import Recorder
from needle.train.step import initial_state


def test_a_checkpoint_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path)
    writer.files.checkpoints.write_text("a file where the folder should be")
    session = SimpleNamespace(
        checkpoints=writer.files.checkpoints,
        inputs=SimpleNamespace(digests={}),
        recorder=Recorder(writer),
    )
    adapter = {"a/kernel": {"A": jnp.ones((1, 2, 1)), "B": jnp.zeros((1, 1, 2))}}
    _save(session, initial_state(adapter, make_optimizer(1e-3, 2)))  # type: ignore[arg-type]
    ((warning,), _) = parse_events(writer.files.events.read_bytes())
    assert warning["kind"] == "warning"
    assert str(warning["message"]).startswith("the checkpoint of step 0 could not be written: ")
