"""Reading a run, whole and while it is written."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from needle.errors import InputError
from needle.runs import RunReader, open_run
from needle.runs.record import RunFiles, RunState, SystemSample, write_json
from needle.runs.writer import RunWriter

STATE = RunState(phase="finished", host="h", boot_id="b", step=3, total=9)


def add(path: Path, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def test_a_run_opened_is_all_there(run: Path) -> None:
    writer = RunWriter(run)
    for step in range(1, 4):
        writer.report(step, loss=1 / step)
    writer.event("end", outcome="finished", reason="")
    write_json(RunFiles(run).state, STATE)
    opened = open_run(run)
    assert opened.request.task == "finetune"
    assert opened.state is not None
    assert opened.state.phase == opened.status().phase == "finished"
    assert opened.metrics.series("loss").steps.tolist() == [1, 2, 3]
    assert [event["kind"] for event in opened.events] == ["end"]
    assert (opened.step, opened.total, opened.garbage_lines) == (3, 9, 0)


def test_a_directory_without_a_request_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no run\.json") as refused:
        open_run(tmp_path)
    assert refused.value.remedy


def test_a_poll_says_what_changed_and_nothing_when_nothing_did(run: Path) -> None:
    reader, writer = RunReader(run), RunWriter(run)
    assert not reader.poll()
    writer.report(1, loss=1.0)
    changes = reader.poll()
    assert (changes.metrics, changes.state, changes.events, changes.system) == (True, False, False, False)
    writer.event("phase", phase="running")
    changes = reader.poll()
    assert (changes.metrics, changes.events) == (False, True)
    assert not reader.poll()


def test_a_heartbeat_alone_is_no_change(run: Path) -> None:
    reader = RunReader(run)
    write_json(RunFiles(run).state, STATE)
    assert reader.poll().state
    write_json(RunFiles(run).state, msgspec.structs.replace(STATE, heartbeat_at=5.0))
    assert not reader.poll()
    assert reader.state is not None
    assert reader.state.heartbeat_at == 5.0
    write_json(RunFiles(run).state, msgspec.structs.replace(STATE, heartbeat_at=7.0, step=4))
    assert reader.poll().state


def test_an_unreadable_state_leaves_the_last_readable_one(run: Path) -> None:
    reader = RunReader(run)
    write_json(RunFiles(run).state, STATE)
    reader.poll()
    RunFiles(run).state.write_text("{")
    assert not reader.poll().state
    assert reader.state == STATE


def test_slices_give_partial_charts_first_and_the_whole_in_the_end(run: Path) -> None:
    lines = "".join(f'{{"step":{step},"loss":1.0}}\n' for step in range(1, 10_001))
    add(RunFiles(run).metrics, lines)
    reader = RunReader(run)
    changes = reader.poll(max_bytes=10_000)
    assert changes.more
    assert 300 < len(reader.metrics.series("loss")) < 600
    while changes.more:
        changes = reader.poll(max_bytes=10_000)
    assert reader.metrics.series("loss").steps.tolist() == list(range(1, 10_001))


def test_garbage_in_every_file_is_counted_and_nothing_around_it_is_lost(run: Path) -> None:
    files, writer = RunFiles(run), RunWriter(run)
    sample = msgspec.json.encode(SystemSample(1.0, 1, 2, 3, 4, 5.0)).decode()
    for _ in range(2):
        writer.report(1, loss=1.0)
        writer.event("warning", message="w")
        add(files.system, sample + "\n")
        for path in (files.metrics, files.events, files.system):
            add(path, "garbage\n")
    add(files.events, "[" * 10_000 + "\n")
    reader = open_run(run)
    assert (len(reader.metrics.series("loss")), len(reader.events), len(reader.system)) == (2, 2, 2)
    assert reader.garbage_lines == 7


def test_a_truncated_file_shows_what_it_holds_now(run: Path) -> None:
    path = RunFiles(run).metrics
    add(path, "".join(f'{{"step":{step},"loss":1.0}}\n' for step in range(1, 101)))
    reader = open_run(run)
    path.write_text('{"step":1,"loss":2.0}\n')
    assert reader.poll().metrics
    assert reader.metrics.series("loss").values.tolist() == [2.0]


def test_a_rotated_file_that_goes_on_keeps_what_was_read(run: Path) -> None:
    path = RunFiles(run).metrics
    add(path, '{"step":1,"loss":1.0}\n{"step":2,"loss":2.0}\n')
    reader = open_run(run)
    os.rename(path, path.with_suffix(".1"))
    add(path, '{"step":3,"loss":3.0}\n')
    reader.poll()
    assert reader.metrics.series("loss").values.tolist() == [1.0, 2.0, 3.0]


def test_a_resumed_attempt_shows_its_own_step_before_its_first_report(run: Path) -> None:
    writer = RunWriter(run, 1)
    for step in range(1, 48):
        writer.report(step, loss=1.0)
    write_json(RunFiles(run).state, msgspec.structs.replace(STATE, attempt=2, phase="compiling", step=40))
    reader = open_run(run)
    assert reader.step == 40
    RunWriter(run, 2).report(41, loss=1.0)
    reader.poll()
    assert reader.step == 41
    assert len(reader.metrics.series("loss")) == 41


def test_only_the_newest_system_samples_are_read_of_a_long_run(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("needle.runs.reader._SYSTEM_BYTES_READ", 1000)
    for index in range(100):
        add(
            RunFiles(run).system,
            msgspec.json.encode(SystemSample(float(index), 1, 2, 3, 4, 5.0)).decode() + "\n",
        )
    reader = open_run(run)
    assert 0 < len(reader.system) < 20
    assert (reader.system[-1].time, reader.garbage_lines) == (99.0, 0)


def test_a_run_written_by_another_program_is_read(run: Path) -> None:
    with open(RunFiles(run).metrics, "w") as file:
        for epoch in range(3):
            json.dump(
                {
                    "epoch": epoch,
                    "step": epoch * 10,
                    "loss": float("nan") if epoch == 1 else 1.0,
                    "note": "x",
                },
                file,
            )
            file.write("\r\n")
    reader = open_run(run)
    assert reader.metrics.names() == ("epoch", "loss")
    assert (len(reader.metrics.series("loss")), reader.garbage_lines) == (3, 0)
    assert reader.status().phase == "running"


def test_reading_a_run_needs_no_write(make_run: Callable[..., Path]) -> None:
    run = make_run()
    before = sorted(path.name for path in run.rglob("*"))
    open_run(run).status()
    assert sorted(path.name for path in run.rglob("*")) == before
