"""Checkpoints come back as they were saved; what is not a sound base model is refused in plain words."""

import json
import pickle

import numpy as np
import pytest

from needle.errors import InputError
from needle.model.checkpoints import load_checkpoint, read_checkpoint, save_checkpoint
from needle.model.files import read_safetensors, write_safetensors
from needle.model.parameters import flatten, unflatten


@pytest.fixture(scope="module")
def tiny(request):
    return read_checkpoint(request.config.rootpath / "tests" / "golden" / "tiny.pkl")


@pytest.fixture
def saved(tiny, tmp_path):
    """A function that saves tiny with changed leaves; None removes one."""

    def save(suffix=".safetensors", **changed):
        flat = {**tiny.flat, **changed}
        path = tmp_path / f"changed{suffix}"
        save_checkpoint(path, unflatten({k: v for k, v in flat.items() if v is not None}), tiny.config)
        return path

    return save


@pytest.mark.parametrize("suffix", [".pkl", ".safetensors"])
def test_a_checkpoint_comes_back_as_it_was_saved(tiny, tmp_path, suffix):
    path = tmp_path / f"copy{suffix}"
    half = {name: leaf.astype(np.float16) for name, leaf in tiny.flat.items()}
    save_checkpoint(path, unflatten(half), tiny.config, step=41, run={"stage": "é"})
    copy = read_checkpoint(path)
    assert copy.config == tiny.config
    assert (copy.step, copy.run) == (41, {"stage": "é"})
    assert copy.flat.keys() == half.keys()
    for name, leaf in copy.flat.items():
        assert leaf.shape == half[name].shape
        np.testing.assert_array_equal(leaf, half[name], err_msg=name)


def test_a_published_pickle_keeps_its_numbers_of_no_axes(tiny):
    gate = tiny.flat["mtp_block/attn_gate"]
    assert (gate.shape, gate.dtype) == ((), np.float32)


@pytest.mark.parametrize("suffix", [".pkl", ".safetensors"])
def test_a_parameter_of_the_wrong_shape_is_named_with_both_shapes(saved, suffix):
    path = saved(suffix, **{"engrams_1/taps": np.zeros((5, 64), np.float32)})
    with pytest.raises(InputError, match=r"engrams_1/taps has shape \(5, 64\), but .* \(4, 64\)"):
        load_checkpoint(path)


def test_a_missing_parameter_is_named(saved):
    with pytest.raises(InputError, match="no parameter stack/mhc_b_res"):
        load_checkpoint(saved(**{"stack/mhc_b_res": None}))


def test_a_head_with_a_part_missing_is_refused_and_without_it_is_not(saved, tiny):
    with pytest.raises(InputError, match="no parameter confidence_head/probes"):
        load_checkpoint(saved(**{"confidence_head/probes": None}))
    without = {name: None for name in tiny.flat if name.startswith(("confidence_head", "mtp"))}
    assert "confidence_head" not in load_checkpoint(saved(**without))[0]


def test_numbers_that_are_not_finite_are_counted(saved, tiny):
    broken = tiny.flat["stack/final_norm/scale"].copy()
    broken[:3] = np.nan, np.inf, -np.inf
    with pytest.raises(InputError, match="final_norm/scale holds 3 numbers that are not finite"):
        load_checkpoint(saved(**{"stack/final_norm/scale": broken}))


def test_a_configuration_no_model_can_have_is_refused(tiny, saved):
    path = saved()
    flat, metadata = read_safetensors(path)
    config = {**json.loads(metadata["config"]), "engram_layers": [0, 9]}
    write_safetensors(path, flat, {**metadata, "config": json.dumps(config)})
    with pytest.raises(InputError, match="engram site 9 is not one of its 3 layers"):
        load_checkpoint(path)


def test_keys_of_a_later_version_in_the_configuration_are_ignored(tiny, tmp_path):
    path = tmp_path / "later.pkl"
    config = {**tiny.config.to_dict(), "sliding_sinks": 4}
    content = {"format_version": 2, "params": unflatten(tiny.flat), "config": config, "step": 0, "run": {}}
    path.write_bytes(pickle.dumps(content))
    assert load_checkpoint(path)[1] == tiny.config


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "LFS"),
        (b"<!DOCTYPE html><html></html>", "(?i)web page|html"),
        (b"", "empty"),
    ],
    ids=["lfs", "html", "empty"],
)
def test_what_only_stands_for_a_checkpoint_is_recognised(tmp_path, content, words):
    path = tmp_path / "needle2.pkl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        load_checkpoint(path)


@pytest.mark.parametrize("suffix", [".pkl", ".safetensors"])
def test_half_a_checkpoint_is_refused_as_cut_short(saved, suffix):
    path = saved(suffix)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="cut short"):
        load_checkpoint(path)


def test_an_adapter_is_not_taken_for_a_base(golden):
    with pytest.raises(InputError, match=r"is an adapter \(made for 'tiny.pkl'\), not a base model"):
        load_checkpoint(golden / "adapter_none.pkl")


def test_a_pickle_that_would_run_code_is_refused_and_does_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    path = tmp_path / "trap.pkl"
    path.write_bytes(pickle.dumps({"format_version": 2, "params": Trap(), "config": {}}))
    with pytest.raises(InputError, match="refused"):
        load_checkpoint(path)
    assert not (tmp_path / "ran").exists()


def test_flattening_and_nesting_are_inverse(tiny):
    again = flatten(unflatten(tiny.flat))
    assert list(again) == sorted(tiny.flat)
    assert all(again[name] is leaf for name, leaf in tiny.flat.items())
