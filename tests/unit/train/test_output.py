from pathlib import Path

import pytest

from needle.config import FinetuneSettings
from needle.errors import InputError
from needle.runs.record import RunFiles
from needle.runs.writer import RunWriter
from needle.train.output import adapter_path, is_taken


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
    RunWriter(files.directory).event("artifact", path=str(out))
    assert not is_taken(out, FinetuneSettings(out=str(out)), files)
