"""What a base model file holds, and what is said of a file that is none."""

import json
import pickle
import struct

import numpy as np
import pytest

from needle.data.base import inspect_base
from needle.data.pickles import load_pickle
from needle.errors import InputError


def flattened(params, prefix=""):
    for name, value in params.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


@pytest.fixture
def tiny(golden):
    """The reference checkpoint as it was saved."""
    return load_pickle(golden / "tiny.pkl")


@pytest.fixture
def as_safetensors(tiny):
    """The bytes of the reference checkpoint in the other format, as the safetensors library writes them."""
    from safetensors.numpy import save

    tensors = {name: np.ascontiguousarray(value) for name, value in flattened(tiny["params"])}
    return save(
        tensors, {"format_version": "2", "config": json.dumps(tiny["config"]), "step": "0", "run": "null"}
    )


def rewritten(content, change):
    """A safetensors file with its header changed."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


def refusal(path):
    with pytest.raises(InputError) as refused:
        inspect_base(path)
    assert refused.value.where == str(path)
    assert refused.value.remedy
    return refused.value.message


def test_the_facts_of_a_pickled_checkpoint(golden, tiny):
    facts = inspect_base(golden / "tiny.pkl")
    assert (facts.vocab_size, facts.d_model, facts.num_layers) == (1024, 64, 3)
    assert (facts.num_heads, facts.num_kv_heads, facts.head_dim) == (4, 2, 16)
    assert facts.format == "pickle"
    assert facts.size_bytes == (golden / "tiny.pkl").stat().st_size
    assert facts.parameter_count == sum(np.size(value) for _, value in flattened(tiny["params"]))


def test_both_formats_tell_the_same(golden, written, as_safetensors):
    from dataclasses import replace

    path = written(as_safetensors, "tiny.safetensors")
    pickled = inspect_base(golden / "tiny.pkl")
    facts = inspect_base(path)
    assert facts == replace(pickled, path=str(path), size_bytes=len(as_safetensors), format="safetensors")


def test_a_file_that_changes_is_looked_at_again(written, golden, as_safetensors):
    path = written(as_safetensors, "base.safetensors")
    assert inspect_base(path).format == "safetensors"
    written((golden / "tiny.pkl").read_bytes(), "base.safetensors")
    assert inspect_base(path).format == "pickle"


@pytest.mark.parametrize("name", ["adapter_none.pkl", "adapter_auto.pkl"])
def test_an_adapter_is_not_taken_for_a_base(golden, name):
    assert refusal(golden / name) == "is an adapter (made for 'tiny.pkl'), not a base model"


def test_an_adapter_in_safetensors_is_not_taken_for_a_base(written):
    from safetensors.numpy import save

    path = written(
        save({"lora/stack/A": np.zeros(2, np.float32)}, {"base": '"x.pkl"'}), "adapter.safetensors"
    )
    assert "is an adapter" in refusal(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"version https://git-lfs.example/spec/v1\noid sha256:00\nsize 90000000\n", "is a Git LFS pointer"),
        (b"\n<!doctype HTML><html>Sign in</html>", "is a web page"),
        (b"", "is empty"),
        (b"abc", "is not a safetensors file"),
        (b'{"a": 1}' * 20, "is not a safetensors file"),
    ],
)
@pytest.mark.parametrize("name", ["base.safetensors", "base.pkl"])
def test_what_is_no_model_is_named(written, content, said, name):
    message = refusal(written(content, name))
    assert message.startswith(said) or (name.endswith(".pkl") and "is not a pickle" in message)


def test_an_exported_archive_is_named(golden):
    assert refusal(golden / "tiny_w4.cact") == "is a .cact archive, which cannot be trained"


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    assert refusal(tmp_path / "none.pkl") == "no such file"
    assert refusal(tmp_path) == "is a directory"


@pytest.mark.parametrize("kept", [4, 8, 20, 3000, 0.5, -1])
def test_a_cut_file_is_refused(written, as_safetensors, kept):
    end = int(kept * len(as_safetensors)) if isinstance(kept, float) else kept
    message = refusal(written(as_safetensors[:end], "cut.safetensors"))
    assert "cut short" in message or message.startswith("is not a safetensors file")


def test_a_cut_file_says_how_much_is_there(written, as_safetensors):
    message = refusal(written(as_safetensors[:-1], "cut.safetensors"))
    assert message == f"is cut short: {len(as_safetensors) - 1:,} of {len(as_safetensors):,} bytes"


def test_bytes_after_the_end_are_refused(written, as_safetensors):
    assert refusal(written(as_safetensors + b"more", "long.safetensors")) == "has 4 bytes after its end"


EMBEDDING = "embedding/embedding"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda header: header[EMBEDDING].update(shape=[1024, 65]), "does not fill its shape"),
        (lambda header: header[EMBEDDING].update(shape=[-1024, -64]), "is badly described"),
        (lambda header: header[EMBEDDING].update(dtype="Q4"), "the unknown format 'Q4'"),
        (lambda header: header[EMBEDDING].update(data_offsets=[0]), "damaged header"),
        (lambda header: header.update(x=5), "is not described"),
        (lambda header: header.update(x=dict(header[EMBEDDING])), "overlap or leave gaps"),
        (lambda header: header.pop("__metadata__"), "it has no 'config' in its metadata"),
        (lambda header: header["__metadata__"].update(config="{"), "its configuration is not JSON"),
        (lambda header: header.update(e=header.pop(EMBEDDING)), "it has no embedding/embedding of 2 axes"),
        (
            lambda header: header["__metadata__"].update(config='{"d_model": 512}'),
            "its d_model is 64 but its",
        ),
        (lambda header: header["__metadata__"].update(config='{"num_heads": 7}'), "7 heads do not divide"),
    ],
)
def test_a_damaged_or_foreign_header_is_refused_with_its_reason(written, as_safetensors, change, said):
    assert said in refusal(written(rewritten(as_safetensors, change), "odd.safetensors"))


@pytest.mark.parametrize(
    ("saved", "said"),
    [
        ([1, 2], "it does not hold a checkpoint"),
        ({"format_version": 1, "params": {}}, "its format_version is 1, not 2"),
        ({"params": {}, "config": {}}, "its format_version is None, not 2"),
        ({"format_version": 2, "params": {}, "config": None}, "it has no 'params' or no 'config'"),
        ({"format_version": 2, "params": {}, "config": {}}, "it has no embedding/embedding of 2 axes"),
    ],
)
def test_a_pickle_of_something_else_is_refused_with_its_reason(written, saved, said):
    assert refusal(written(pickle.dumps(saved), "odd.pkl")) == f"is not a Needle base model: {said}"
