"""A run directory without processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from needle.config import FinetuneSettings
from needle.runs.index import create_run
from needle.runs.record import Decision, Plan

NOTHING = Decision("none", "a test")


@pytest.fixture
def plan() -> Plan:
    return Plan(
        command=("true",),
        command_line=("needle", "finetune", "a-test"),
        interpreter="python",
        environment=(),
        backend=NOTHING,
        kernel=NOTHING,
        placement=NOTHING,
        precision=NOTHING,
        base=NOTHING,
        total_steps=100,
    )


@pytest.fixture
def make_run(tmp_path: Path, plan: Plan) -> Callable[..., Path]:
    def make(name: str = "a test", folder: str = "runs") -> Path:
        return create_run("finetune", FinetuneSettings(), plan, tmp_path / folder, name)

    return make


@pytest.fixture
def run(make_run: Callable[..., Path]) -> Path:
    return make_run()
