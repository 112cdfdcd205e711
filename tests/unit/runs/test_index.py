"""Making, finding, naming and deleting runs."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from needle.config import FinetuneSettings
from needle.errors import InputError
from needle.runs import index
from needle.runs.index import create_run, default_runs_directory, find_runs, remove_run, resolve_run
from needle.runs.record import Plan, RunFiles, RunState, read_request, write_json

Make = Callable[..., Path]


def end(run: Path) -> None:
    write_json(RunFiles(run).state, RunState(phase="finished", host="h", boot_id="b"))


def test_an_id_is_the_time_and_the_name(tmp_path: Path, plan: Plan) -> None:
    settings = FinetuneSettings(name="Tools, v2!")
    run = create_run("finetune", settings, plan, tmp_path)
    stamp, name = run.name[:15], run.name[16:]
    assert time.strptime(stamp, "%Y%m%d-%H%M%S")
    assert name == "tools-v2"
    request = read_request(run)
    assert (request.id, request.name, request.settings["name"]) == (run.name, "Tools, v2!", "Tools, v2!")
    assert {path.name for path in run.iterdir()} == {"run.json", "control", "checkpoints", "artifacts"}


@pytest.mark.parametrize("name", ["", "../../etc", "--", "名前", "a" * 300])
def test_any_name_makes_a_plain_directory_inside_the_folder(
    make_run: Make, name: str, tmp_path: Path
) -> None:
    run = make_run(name)
    assert run.parent == tmp_path / "runs"
    assert len(run.name) < 80


def test_runs_of_the_same_second_have_different_ids(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index.time, "time", lambda: 1_764_000_000.0)
    names = [make_run().name for _ in range(3)]
    assert names[1:] == [names[0] + "-2", names[0] + "-3"]
    assert [read_request(run).id for run in find_runs()] != []


def test_many_starters_at_once_all_get_their_own(make_run: Make) -> None:
    made: list[Path] = []
    threads = [threading.Thread(target=lambda: made.append(make_run())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 16


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made") as refused:
        create_run("finetune", FinetuneSettings(), plan, tmp_path / "file" / "runs")
    assert "--runs" in refused.value.remedy


def test_a_run_that_could_not_be_written_leaves_nothing(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index, "write_json", full)
    with pytest.raises(InputError, match="No space left"):
        create_run("finetune", FinetuneSettings(), plan, tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_runs_are_found_newest_first_wherever_they_were_started(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1_764_000_000, 1_764_000_100, 10))
    monkeypatch.setattr(index.time, "time", lambda: float(next(clock)))
    made = [make_run(folder=folder) for folder in ("one", "two", "one", "three")]
    assert find_runs(tmp_path / "two") == made[::-1]


def test_what_is_no_run_is_not_listed(make_run: Make, tmp_path: Path) -> None:
    run = make_run()
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "runs" / "file").touch()
    broken = tmp_path / "runs" / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    assert find_runs(tmp_path / "runs") == [run]


def test_the_folder_is_the_environments_or_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_runs_directory() == tmp_path / "runs"
    monkeypatch.setenv("NEEDLE_RUNS", "elsewhere")
    assert default_runs_directory() == tmp_path / "elsewhere"


def test_a_run_is_meant_by_path_id_beginning_or_latest(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index.time, "time", lambda: 1_764_000_000.0)
    first = make_run("alpha")
    monkeypatch.setattr(index.time, "time", lambda: 1_764_100_000.0)
    second = make_run("beta")
    folder = first.parent
    for text in (str(first), str(first) + "/", str(first / "metrics.jsonl"), first.name, first.name[:15]):
        assert resolve_run(text, folder) == first
    assert resolve_run("latest", folder) == second
    monkeypatch.chdir(folder)
    assert resolve_run(second.name, folder / "none") == second


def test_an_id_that_begins_another_is_still_meant_exactly(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index.time, "time", lambda: 1_764_000_000.0)
    first, second = make_run(), make_run()
    assert second.name.startswith(first.name)
    assert resolve_run(first.name, first.parent) == first


@pytest.mark.parametrize("text", ["2025", "", "nothing-like-it", "/nowhere/at/all", "latest"])
def test_what_means_no_run_or_several_is_refused_with_words(
    make_run: Make, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if text != "latest":
        monkeypatch.setattr(index.time, "time", lambda: 1_764_000_000.0)
        make_run("alpha")
        make_run("beta")
    with pytest.raises(InputError) as refused:
        resolve_run(text, tmp_path / "runs")
    assert refused.value.remedy


def test_a_misspelt_id_suggests_the_right_one(make_run: Make) -> None:
    run = make_run("alpha")
    with pytest.raises(InputError, match=f"did you mean {run.name}"):
        resolve_run(run.name[:-1] + "x", run.parent)


def test_an_ended_run_is_deleted_whole_and_its_neighbours_stay(make_run: Make) -> None:
    doomed, kept = make_run("doomed"), make_run("kept")
    end(doomed)
    (doomed / "checkpoints" / "step-1").mkdir()
    remove_run(doomed)
    assert list(kept.parent.iterdir()) == [kept]


def test_a_run_about_to_start_is_not_deleted(run: Path) -> None:
    with pytest.raises(InputError, match="queued"):
        remove_run(run)
    assert run.exists()


def test_an_index_that_cannot_be_written_costs_nothing_but_itself(
    make_run: Make, own_home: Path, tmp_path: Path
) -> None:
    (own_home / "xdg_state_home").write_text("a file where a folder should be")
    run = make_run()
    assert find_runs(tmp_path / "runs") == [run]
    assert find_runs(tmp_path / "elsewhere") == []


def test_the_list_of_folders_forgets_what_is_gone_when_it_grows_long(
    make_run: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(index, "_MOST_FOLDERS", 3)
    runs = [make_run(folder=name) for name in ("a", "b", "c")]
    index.shutil.rmtree(tmp_path / "a")
    runs.append(make_run(folder="d"))
    assert set(find_runs(tmp_path / "none")) == set(runs[1:])


def test_a_record_means_the_same_files_through_a_symbolic_link(tmp_path):
    scratch, linked, program = tmp_path / "scratch" / "deep", tmp_path / "runs", tmp_path / "python"
    scratch.mkdir(parents=True)
    linked.symlink_to(scratch)
    through_link, direct = RunFiles(linked / "run"), RunFiles(scratch / "run")
    for files in (through_link, direct):
        assert files.located(through_link.recorded(program)) == program
