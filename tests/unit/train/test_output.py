from pathlib import Path

import numpy as np
import pytest

from needle.config import FinetuneSettings
from needle.errors import InputError, RunError
from needle.model.adapters import AdapterFile, load_adapter
from needle.runs.record import RunFiles
from needle.runs.writer import RunWriter
from needle.train.output import adapter_path, is_taken, write_adapter


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    files = RunFiles(tmp_path / "run")
    files.artifacts.mkdir(parents=True)
    return files


def test_without_a_name_the_adapter_lies_in_the_run_directory(files: RunFiles) -> None:
    assert adapter_path(FinetuneSettings(), files) == files.artifacts / "adapter.safetensors"


def test_a_relative_name_is_below_the_working_directory(
    files: RunFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert adapter_path(FinetuneSettings(out="a/b.pkl"), files) == tmp_path / "a" / "b.pkl"


def test_another_suffix_is_refused(files: RunFiles) -> None:
    with pytest.raises(InputError, match=r"ends in \.safetensors or \.pkl"):
        adapter_path(FinetuneSettings(out="adapter.bin"), files)


def test_a_file_that_exists_is_refused_unless_told_to_overwrite(files: RunFiles, tmp_path: Path) -> None:
    out = tmp_path / "mine.safetensors"
    out.write_text("precious")
    with pytest.raises(InputError, match="already exists"):
        adapter_path(FinetuneSettings(out=str(out)), files)
    assert adapter_path(FinetuneSettings(out=str(out), overwrite=True), files) == out


def test_what_an_earlier_attempt_of_this_run_wrote_is_its_own_to_replace(
    files: RunFiles, tmp_path: Path
) -> None:
    out = tmp_path / "mine.safetensors"
    out.write_text("from attempt 1")
    RunWriter(files.directory).event("artifact", path=files.recorded(out))
    assert not is_taken(out, FinetuneSettings(out=str(out)), files)


def adapter() -> AdapterFile:
    pair = {"A": np.ones((1, 2, 1), np.float32), "B": np.ones((1, 1, 2), np.float32)}
    return AdapterFile(lora={"a/kernel": pair}, scale=2.0, base="tiny", rank=1, seed=0)


def test_the_result_is_written_where_it_was_asked_for_making_its_folder(
    files: RunFiles, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "mine.pkl"
    assert write_adapter(out, adapter(), FinetuneSettings(out=str(out)), files) == (out, "")
    assert load_adapter(out).base == "tiny"


def test_a_file_that_appeared_during_the_run_is_left_alone_and_the_result_is_not_lost(
    files: RunFiles, tmp_path: Path
) -> None:
    out = tmp_path / "mine.safetensors"
    out.write_text("somebody's")
    path, why = write_adapter(out, adapter(), FinetuneSettings(out=str(out)), files)
    assert out.read_text() == "somebody's"
    assert load_adapter(path).rank == 1
    assert why.startswith(f"{out}: appeared during the run")
    assert files.recorded(path) in why


def test_a_place_that_cannot_be_written_any_more_does_not_cost_the_training(
    files: RunFiles, tmp_path: Path
) -> None:
    (tmp_path / "folder").write_text("now a file")
    out = tmp_path / "folder" / "mine.safetensors"
    path, why = write_adapter(out, adapter(), FinetuneSettings(out=str(out)), files)
    assert load_adapter(path).rank == 1
    assert "folder" in why


def test_a_run_directory_that_cannot_be_written_is_an_error(files: RunFiles) -> None:
    files.artifacts.rmdir()
    files.artifacts.write_text("now a file")
    with pytest.raises((OSError, RunError)):
        write_adapter(files.artifacts / "adapter.safetensors", adapter(), FinetuneSettings(), files)
