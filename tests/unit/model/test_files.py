"""Files of arrays hold exactly what was given, and are replaced as a whole or not at all."""

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from needle.errors import InputError, RunError
from needle.model import files
from needle.model.files import read_safetensors, write_pickle, write_safetensors

GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
ORDERS = {
    "transposed": GRID.T,
    "fortran": np.asfortranarray(GRID),
    "strided": GRID[:, ::2],
    "reversed": GRID[::-1],
    "no axes": np.float32(3.5),
    "empty": np.zeros((0, 4), np.float32),
    "half": GRID.T.astype(np.float16),
    "bfloat16": GRID.T.astype(ml_dtypes.bfloat16),
    "whole numbers": GRID.T.astype(np.int32),
}


@pytest.mark.parametrize("name", ORDERS)
def test_an_array_of_any_order_is_written_as_it_reads(tmp_path, name):
    path = tmp_path / "arrays.safetensors"
    write_safetensors(path, {name: ORDERS[name]}, {})
    for read in (load_file(path), read_safetensors(path)[0]):
        assert read[name].dtype == ORDERS[name].dtype
        assert read[name].shape == ORDERS[name].shape
        np.testing.assert_array_equal(read[name], ORDERS[name])


def test_text_beside_the_arrays_comes_back(tmp_path):
    write_safetensors(tmp_path / "a.safetensors", {"x": GRID}, {"base": '"é"'})
    assert read_safetensors(tmp_path / "a.safetensors")[1] == {"base": '"é"'}


def test_a_file_cut_short_is_refused_with_its_sizes(tmp_path):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"x": GRID}, {})
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(InputError, match=rf"cut short: {len(whole) - 5} of {len(whole)} bytes"):
        read_safetensors(path)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_safetensors(path, {"x": GRID}, {"n": 1}),  # type: ignore
        lambda path: write_pickle(path, {"x": lambda: None}),
    ],
)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, write):
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with pytest.raises(RunError, match="cannot be written"):
        write(path)
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]
    assert path.read_bytes() == b"old"


def test_a_crash_before_the_content_is_on_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        write_safetensors(path, {"x": GRID}, {})
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]
    assert path.read_bytes() == b"old"


def test_a_folder_that_does_not_exist_is_said_in_words(tmp_path):
    with pytest.raises(RunError, match="No such file or directory") as failure:
        write_safetensors(tmp_path / "nowhere" / "a.safetensors", {"x": GRID}, {})
    assert "its directory exists" in failure.value.remedy
