"""The whole way, for real: a terminal, one key, a training process, and what becomes of it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from needle.data.sample import sample_directory
from needle.runs import open_run
from needle.runs.record import read_state
from tools.terminal import Terminal


@pytest.fixture
def cockpit(tmp_path, own_home):
    """A function that opens the cockpit in a terminal; everything it started is gone afterwards."""
    opened: list[Terminal] = []

    def open_cockpit(*arguments: str, columns: int = 120, rows: int = 36) -> Terminal:
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        command = [sys.executable, "-m", "needle_tui", *arguments]
        terminal = Terminal(command, columns=columns, rows=rows, environment=environment, directory=tmp_path)
        opened.append(terminal)
        return terminal

    yield open_cockpit
    for terminal in opened:
        terminal.close()
    for state in map(read_state, run_directories(tmp_path)):
        for pid in (state.supervisor_pid, state.pid) if state else ():
            kill(pid)


def run_directories(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("runs/*/run.json"))


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def start_sample(terminal: Terminal, tmp_path: Path, wait_for) -> Path:
    """Press the one key on the form that opens prefilled; returns the run once it has reported points."""
    terminal.wait_for("480 examples")
    terminal.press("ctrl+s")
    wait_for(lambda: terminal.pump(0.05) is not None and run_directories(tmp_path), "a run directory")
    (directory,) = run_directories(tmp_path)
    wait_for(lambda: terminal.pump(0.05) is not None and points(directory) >= 3, "the third loss point", 90)
    return directory


def points(directory: Path) -> int:
    return len(open_run(directory).metrics.series("loss").values)


def trainer_of(directory: Path) -> int:
    state = read_state(directory)
    assert state is not None
    assert psutil.pid_exists(state.pid)
    return state.pid


def shown_step(terminal: Terminal) -> int:
    found = re.search(r"step +([\d,]+) of", terminal.text())
    return int(found.group(1).replace(",", "")) if found else -1


def test_one_key_starts_training_and_a_dropped_line_leaves_it_alone(cockpit, tmp_path, wait_for):
    terminal = cockpit(columns=120, rows=36)
    directory = start_sample(terminal, tmp_path, wait_for)
    wait_for(lambda: terminal.pump(0.1) is not None and shown_step(terminal) >= 2, "a step on the screen")
    assert "running" in terminal.text()
    assert "Traceback" not in terminal.text()
    pid, before = trainer_of(directory), points(directory)
    terminal.hang_up()
    wait_for(lambda: points(directory) >= before + 3, "three more points without a terminal", 60)
    assert psutil.pid_exists(pid)
    again = cockpit("watch", directory.name)
    again.wait_for("running")
    wait_for(lambda: again.pump(0.1) is not None and shown_step(again) >= before + 3, "the later step")
    assert open_run(directory).metrics.series("loss").steps[0] <= 1


def test_on_a_small_screen_a_run_starts_and_stopping_it_saves_the_adapter(cockpit, tmp_path, wait_for):
    terminal = cockpit(columns=80, rows=24)
    directory = start_sample(terminal, tmp_path, wait_for)
    wait_for(lambda: terminal.pump(0.1) is not None and shown_step(terminal) >= 2, "a step on the screen")
    terminal.press("s")
    terminal.wait_for("It finishes the step")
    terminal.press("y")
    wait_for(lambda: terminal.pump(0.1) is not None and "◼ stopped" in terminal.text(), "stopped", 60)
    assert open_run(directory).status().phase == "stopped"
    assert list((directory / "artifacts").glob("*.safetensors"))


def test_deaths_are_told_for_what_they_are_and_a_killed_run_resumes(cockpit, tmp_path, wait_for):
    terminal = cockpit()
    directory = start_sample(terminal, tmp_path, wait_for)
    os.kill(trainer_of(directory), signal.SIGKILL)
    wait_for(
        lambda: terminal.pump(0.1) is not None and "killed" in terminal.text(), "killed on the screen", 5
    )
    assert "SIGKILL" in terminal.text()
    terminal.press("r")
    wait_for(
        lambda: terminal.pump(0.1) is not None and "attempt 2" in terminal.text(), "a second attempt", 60
    )
    state = read_state(directory)
    kill(state.supervisor_pid)
    kill(state.pid)
    wait_for(lambda: terminal.pump(0.1) is not None and "lost" in terminal.text(), "lost on the screen", 10)
    assert "running" not in terminal.text().splitlines()[1]


BROKEN = {
    "missing": (None, "no such file"),
    "empty": (b"", "empty"),
    "not json": (b"hello\nworld\n", "line 1"),
    "binary": (bytes(range(256)), "not JSON"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_bad_data_file_is_told_on_the_command_line_without_a_traceback(tmp_path, kind):
    content, words = BROKEN[kind]
    if content is not None:
        (tmp_path / "data.jsonl").write_bytes(content)
    done = needle("finetune", "data.jsonl", directory=tmp_path)
    assert done.returncode == 2
    assert "data.jsonl" in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not run_directories(tmp_path)


def test_a_base_that_does_not_exist_is_told_on_the_command_line(tmp_path):
    done = needle("finetune", "sample", "--checkpoint", "nowhere.pkl", directory=tmp_path)
    assert done.returncode == 2
    assert "nowhere.pkl: no such file" in done.stderr


@pytest.mark.parametrize("kind", ["missing", "not json"])
def test_a_bad_data_file_is_told_at_its_field(cockpit, tmp_path, wait_for, kind):
    content, words = BROKEN[kind]
    if content is not None:
        (tmp_path / "data.jsonl").write_bytes(content)
    terminal = cockpit()
    terminal.wait_for("480 examples")
    terminal.press("tab")
    terminal.wait_for("▸ Data")
    terminal.press("ctrl+u")
    terminal.wait_for("no data file yet")
    terminal.press("data.jsonl")
    terminal.wait_for("✗ Data        data.jsonl")
    terminal.wait_for(words)
    terminal.press("ctrl+s")
    terminal.pump(0.5)
    assert "Traceback" not in terminal.text()
    assert not run_directories(tmp_path)


@pytest.fixture
def small_data(tmp_path) -> Path:
    """Sixty of the sample's examples, in a file of one's own."""
    lines = (sample_directory() / "train.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "small.jsonl"
    path.write_text("".join(lines[:60]))
    return path


def test_the_command_line_trains_to_the_end_and_its_record_names_no_machine(tmp_path, small_data):
    done = needle(
        *("finetune", small_data.name, "--epochs", "1", "--no-eval"),
        *("--out", "adapter.safetensors", "--json"),
        directory=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["phase"], summary["artifacts"]) == ("finished", ["adapter.safetensors"])
    assert (tmp_path / "adapter.safetensors").stat().st_size > 10_000
    (directory,) = run_directories(tmp_path)
    for name in ("run.json", "state.json", "events.jsonl", "log.txt"):
        assert str(tmp_path) not in (directory / name).read_text(), name


def test_a_detached_run_is_stopped_by_name_and_resumed_from_another_folder(tmp_path, small_data, wait_for):
    started = needle("finetune", small_data.name, "--epochs", "50", "--detach", directory=tmp_path)
    name = started.stdout.strip()
    directory = tmp_path / "runs" / name
    wait_for(lambda: points(directory) >= 1, "the first point", 90)
    assert needle("runs", "stop", name, directory=tmp_path).returncode == 0
    wait_for(lambda: open_run(directory).status().phase == "stopped", "stopped")
    before = points(directory)
    (tmp_path / "elsewhere").mkdir()
    resumed = needle("finetune", "--resume", str(directory), "--detach", directory=tmp_path / "elsewhere")
    assert (resumed.returncode, resumed.stdout.strip()) == (0, name), resumed.stderr
    wait_for(lambda: points(directory) > before, "a further point", 90)
    assert [event["step"] for event in open_run(directory).events if event["kind"] == "resumed"] == [before]
    needle("runs", "stop", str(directory), "--now", directory=tmp_path)
    wait_for(lambda: open_run(directory).status().ended, "the end")


def needle(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "needle", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=240)
