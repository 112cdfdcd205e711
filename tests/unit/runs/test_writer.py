"""What a trainer writes, line by line."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import needle
from needle.runs import open_run, writer
from needle.runs.writer import RunWriter

FULL_DISK = Path("/dev/full")


def metric_lines(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_report_is_one_line_with_step_time_and_attempt_first(run: Path) -> None:
    RunWriter(run, attempt=2).report(7, loss=0.5, tokens=64)
    (line,) = metric_lines(run)
    assert list(line)[:3] == ["step", "time", "attempt"]
    assert (line["step"], line["attempt"], line["loss"], line["tokens"]) == (7, 2, 0.5, 64)


def test_each_line_is_one_write(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(writer.os, "write", lambda _, data: written.append(data) or len(data))
    made = RunWriter(run)
    made.report(1, loss=1.0)
    made.event("phase", phase="running")
    assert [data.count(b"\n") for data in written] == [1, 1]
    assert all(data.endswith(b"}\n") for data in written)


def test_numbers_of_other_libraries_are_numbers_and_none_is_left_out(run: Path) -> None:
    RunWriter(run).report(np.int64(3), a=np.float32(0.5), b=np.array(2), c=True, d=None)  # type: ignore[arg-type]
    (line,) = metric_lines(run)
    assert (line["step"], line["a"], line["b"], line["c"], "d" in line) == (3, 0.5, 2, 1, False)


def test_non_finite_numbers_are_words_and_come_back_as_numbers(run: Path) -> None:
    RunWriter(run).report(1, a=math.nan, b=math.inf, c=-math.inf)
    (line,) = metric_lines(run)
    assert (line["a"], line["b"], line["c"]) == ("NaN", "Infinity", "-Infinity")
    metrics = open_run(run).metrics
    assert math.isnan(metrics.last("a") or 0)
    assert (metrics.last("b"), metrics.last("c")) == (math.inf, -math.inf)


def test_an_event_says_when_and_of_which_attempt(run: Path) -> None:
    before = time.time()
    RunWriter(run, 3).event("evaluation", step=4, val_loss=np.float32(0.5), worst=math.inf, path=Path("x"))
    (event,) = open_run(run).events
    assert (event["kind"], event["attempt"], event["step"], event["val_loss"]) == ("evaluation", 3, 4, 0.5)
    assert (event["worst"], event["path"]) == ("Infinity", "x")
    assert before - 1 <= float(str(event["at"])) <= time.time() + 1


def test_a_half_line_of_a_killed_attempt_does_not_swallow_the_next(run: Path) -> None:
    (run / "metrics.jsonl").write_bytes(b'{"step":1,"loss":1.0}\n{"step":2,"lo')
    RunWriter(run, 2).report(2, loss=0.5)
    reader = open_run(run)
    assert reader.metrics.series("loss").values.tolist() == [1.0, 0.5]
    assert reader.garbage_lines == 1


@pytest.mark.skipif(not FULL_DISK.exists(), reason="needs /dev/full")
def test_a_full_disk_costs_lines_and_is_told_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "metrics.jsonl").symlink_to(FULL_DISK)
    made = RunWriter(run)
    for step in range(3):
        made.report(step, loss=1.0)
    assert capsys.readouterr().err.count("No space left") == 1


def test_a_stop_request_is_seen_within_a_moment_and_stays_seen(run: Path, wait_for: object) -> None:
    made = RunWriter(run)
    assert not made.stop_requested()
    (run / "control" / "stop").touch()
    wait_for(made.stop_requested, "the request", within_s=2)  # type: ignore[operator]
    (run / "control" / "stop").unlink()
    assert made.stop_requested()


def test_times_count_from_the_beginning_its_supervisor_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDLE_BEGAN", repr(time.monotonic() - 50))
    RunWriter(run).report(1)
    assert 50 <= float(str(metric_lines(run)[0]["time"])) < 60


@pytest.mark.parametrize("began", ["", "soon", "inf", "-1e300", "1e300"])
def test_a_nonsensical_beginning_is_now(run: Path, monkeypatch: pytest.MonkeyPatch, began: str) -> None:
    monkeypatch.setenv("NEEDLE_BEGAN", began)
    RunWriter(run).report(1)
    assert 0 <= float(str(metric_lines(run)[0]["time"])) < 10


def test_report_does_nothing_outside_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_own", None)
    monkeypatch.chdir(tmp_path)
    needle.report(step=1, loss=0.5)
    assert list(tmp_path.iterdir()) == []


def test_any_program_can_report_to_the_run_it_belongs_to(run: Path) -> None:
    script = "import needle\nfor step in range(1, 4): needle.report(step=step, loss=1 / step)"
    environment = {**os.environ, "NEEDLE_RUN": str(run), "NEEDLE_ATTEMPT": "2"}
    environment["PYTHONPATH"] = str(Path(needle.__file__).parents[1])
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, cwd=run)
    assert [(line["step"], line["attempt"]) for line in metric_lines(run)] == [(1, 2), (2, 2), (3, 2)]


def test_two_writers_at_once_never_mix_their_lines(run: Path) -> None:
    script = (
        "import sys\nfrom needle.runs.writer import RunWriter\nwriter = RunWriter(sys.argv[1])\n"
        "for step in range(2000): writer.report(step, loss=float(sys.argv[2]), note=step)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(needle.__file__).parents[1])}
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(run), value], env=environment) for value in "12"
    ]
    assert [child.wait(60) for child in children] == [0, 0]
    reader = open_run(run)
    values = reader.metrics.series("loss").values.tolist()
    assert (values.count(1.0), values.count(2.0), reader.garbage_lines) == (2000, 2000, 0)
