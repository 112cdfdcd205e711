"""XLA flags tried in a throw-away child before a run: an unknown one would abort it (row 32)."""

import os
import subprocess
import time

import pytest

from needle.devices.inventory import static_inventory
from needle.errors import InputError
from needle.launch.flag_check import check_flags
from needle.launch.preflight import inspect_finetune


@pytest.fixture
def check(tmp_path):
    """Checks flags with this interpreter, remembering in a folder of this test."""

    def run(extra, **inherited):
        environment = {**os.environ, **inherited}
        check_flags(extra, static_inventory(), environment, cache_directory=tmp_path)

    return run


def test_row_32_an_unknown_flag_is_refused_by_name_and_a_known_one_is_taken(check):
    check("--xla_cpu_enable_fast_math=false")
    with pytest.raises(InputError) as caught:
        check("--xla_cpu_enable_fast_math=false --xla_gpu_graph_level=0")
    assert caught.value.field == "xla_flags"
    assert "--xla_gpu_graph_level=0" in caught.value.message
    assert "does not know" in caught.value.message


def test_row_32_flags_of_the_environment_are_tried_with_the_runs(check):
    with pytest.raises(InputError, match="--xla_of_yours=1"):
        check("--xla_cpu_enable_fast_math=false", XLA_FLAGS="--xla_of_yours=1")


def test_the_answer_is_remembered_and_costs_no_second_child(check, monkeypatch):
    check("--xla_cpu_enable_fast_math=false")
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a child was started"))
    started = time.perf_counter()
    check("--xla_cpu_enable_fast_math=false")
    assert time.perf_counter() - started < 1
    check("")


def test_a_misspelt_flag_is_refused_without_a_child(check, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a child was started"))
    with pytest.raises(InputError, match="begins with --xla_"):
        check("xla_cpu_enable_fast_math=false")


def test_the_form_and_the_command_are_told_at_the_field():
    facts = inspect_finetune({"data": "sample", "checkpoint": "sample", "xla_flags": "--xla_no_such=1"})
    assert list(facts.problems) == ["xla_flags"]
    assert "--xla_no_such=1" in facts.problems["xla_flags"]
