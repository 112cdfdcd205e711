"""`needle build` as a person runs it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from needle.cli import run
from needle.data.base import inspect_base
from needle.data.sample import sample_base
from needle.model.adapters import AdapterFile, load_adapter, save_adapter
from needle.model.archive_reading import read_archive
from needle.model.checkpoints import load_checkpoint, save_checkpoint
from needle.model.parameters import flatten, unflatten


@pytest.fixture
def base(golden):
    return golden / "tiny.pkl"


@pytest.fixture
def trained(golden):
    return golden / "adapter_auto.pkl"


@pytest.fixture
def refused(tmp_path, capsys):
    """A function that runs a build that must be refused, writing nothing, and returns what was said."""

    def refuse(*arguments: object) -> str:
        before = sorted(tmp_path.iterdir())
        assert run(["build", *map(str, arguments)]) == 2
        assert sorted(tmp_path.iterdir()) == before
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "Traceback" not in printed.err
        return printed.err

    return refuse


def test_the_tuned_model_is_built_and_summarised(golden, base, trained, tmp_path):
    out = tmp_path / "model.cact"
    command = [sys.executable, "-m", "needle.cli", "build", base, "--lora", trained, "--out", out]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")
    assert out.read_bytes() == (golden / "tuned_w4.cact").read_bytes()
    assert "total                    69" in done.stdout
    assert "249,840" in done.stdout
    assert "4 bits — what the adapter was trained for" in done.stdout


def test_building_never_loads_jax(base, trained, tmp_path):
    arguments = ["build", str(base), "--lora", str(trained), "--out", str(tmp_path / "model.cact")]
    script = (
        "import sys; from needle.cli import run; import needle.commands.build;"
        "early = [name for name in sys.modules if name.startswith('needle.model')];"
        f"status = run({arguments!r}); loaded = {{'jax', 'jaxlib', 'flax', 'optax'}} & set(sys.modules);"
        "sys.exit(f'{status} {early} {loaded}' if status or early or loaded else 0)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_json_document_is_all_there_is_on_stdout(base, trained, tmp_path, capsys):
    out = tmp_path / "model.cact"

    assert run(["build", str(base), "--lora", str(trained), "--out", str(out), "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["archive"] == str(out)
    assert document["bytes"] == out.stat().st_size == sum(row["size_bytes"] for row in document["rows"])
    assert document["bits_map"] == "default=4"
    assert document["warnings"] == []


def test_a_map_gives_each_part_its_bits(golden, base, tmp_path):
    out = tmp_path / "model.cact"
    bits = "default=2,embedding=4,attn.q_proj=3,engram0=1.58"

    assert run(["build", str(base), "--bits-map", bits, "--out", str(out)]) == 0

    assert out.read_bytes() == (golden / "tiny_mixed.cact").read_bytes()


def test_what_a_run_on_the_embedded_sample_left_can_be_built(tmp_path, capsys):
    kernel = "stack/layers/block/self_attn/q_proj/kernel"
    layers = inspect_base(sample_base()).num_layers
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype("f4") for shape in ((layers, 128, 2), (layers, 2, 128)))
    adapter, out = tmp_path / "adapter.safetensors", tmp_path / "sample.cact"
    save_adapter(adapter, AdapterFile({kernel: {"A": a, "B": b}}, 1.0, "sample", rank=2, seed=0, qat_bits=2))

    assert run(["build", "sample", "--lora", str(adapter), "--out", str(out)]) == 0

    assert capsys.readouterr().err == ""
    weights = read_archive(out).params["stack"]["layers"]["block"]["self_attn"]["q_proj"]["kernel"]
    assert np.corrcoef(weights.ravel(), (a @ b).ravel())[0, 1] > 0.9


def test_a_safetensors_base_and_adapter_give_the_same_archive(golden, base, trained, tmp_path):
    params, config = load_checkpoint(base)
    save_checkpoint(tmp_path / "tiny.safetensors", params, config)
    save_adapter(tmp_path / "adapter.safetensors", load_adapter(trained))
    shutil.copy(golden / "tokenizer.model", tmp_path)
    out = tmp_path / "model.cact"

    arguments = ["--lora", str(tmp_path / "adapter.safetensors"), "--out", str(out)]
    assert run(["build", str(tmp_path / "tiny.safetensors"), *arguments]) == 0

    assert out.read_bytes() == (golden / "tuned_w4.cact").read_bytes()


def test_an_archive_that_exists_is_kept_unless_asked(base, tmp_path, refused):
    out = tmp_path / "model.cact"
    out.write_bytes(b"mine")

    said = refused(base, "--out", out)

    assert "already exists" in said
    assert "--overwrite" in said
    assert out.read_bytes() == b"mine"
    assert run(["build", str(base), "--out", str(out), "--overwrite"]) == 0
    assert read_archive(out).config.num_layers == 3


def test_a_build_that_fails_leaves_the_old_archive(base, golden, tmp_path, refused):
    out = tmp_path / "model.cact"
    out.write_bytes(b"mine")

    refused(base, "--lora", golden / "tokenizer.model", "--out", out, "--overwrite")

    assert out.read_bytes() == b"mine"


def test_what_it_is_built_from_is_never_overwritten(base, golden, tmp_path, refused):
    copy = shutil.copy(base, tmp_path / "base.pkl")
    shutil.copy(golden / "tokenizer.model", tmp_path)

    assert "is what the archive is built from" in refused(copy, "--out", copy, "--overwrite")
    assert Path(copy).read_bytes() == base.read_bytes()


@pytest.mark.parametrize(
    ("out", "words"),
    [(".", "is a directory"), ("missing/model.cact", "its directory does not exist")],
)
def test_an_impossible_place_is_found_before_the_work(base, tmp_path, refused, out, words):
    assert words in refused(base, "--out", tmp_path / out)


def test_flags_that_contradict_the_adapter_build_nothing(base, trained, tmp_path, refused):
    said = refused(base, "--lora", trained, "--bits", "2", "--out", tmp_path / "model.cact")

    assert "--bits 2 contradicts the adapter, which was trained for 4 bits" in said


def test_an_adapter_trained_without_rounding_is_warned_about_on_stderr(base, golden, tmp_path, capsys):
    arguments = ["--lora", str(golden / "adapter_none.pkl"), "--out", str(tmp_path / "model.cact"), "--json"]

    assert run(["build", str(base), *arguments]) == 0

    printed = capsys.readouterr()
    assert "trained without rounding" in printed.err
    assert json.loads(printed.out)["warnings"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.pkl"], "nowhere.pkl: no such file"),
        (["{golden}/adapter_auto.pkl"], "is an adapter (made for 'tiny.pkl'), not a base model"),
        (["{golden}/tiny_w4.cact"], "is a .cact archive"),
        (["{golden}/tokenizer.model"], "is not a safetensors file"),
        (["{base}", "--lora", "nowhere.safetensors"], "nowhere.safetensors: no such file"),
        (["{base}", "--lora", "{base}"], "is not an adapter: it is a base model"),
        (["{base}", "--lora", "{golden}/tuned_w4.cact"], "is a .cact archive"),
        (["{base}", "--tokenizer", "{base}"], "is not a SentencePiece model"),
        (["{base}", "--tokenizer", "nowhere.model"], "nowhere.model: no such file"),
        (["{base}", "--bits", "8"], "invalid choice: 8"),
        (["{base}", "--bits", "2", "--bits-map", "default=2"], "two ways to say one thing"),
        (["{base}", "--bits-map", "attn.qproj=3"], "did you mean 'attn.q_proj'?"),
        (["{base}", "--bits-map", "engram2=3"], "this model has 2 engram sites"),
    ],
)
def test_what_cannot_be_built_is_said_in_words(base, golden, tmp_path, refused, arguments, words):
    filled = [text.format(base=base, golden=golden) for text in arguments]

    said = refused(*filled, "--out", tmp_path / "model.cact")

    assert words in said
    assert "\n  " in said or ";" in said, "every refusal says what to do"


def test_out_must_be_given(base, refused):
    assert "--out" in refused(base)


def test_weights_that_are_not_finite_are_named(base, golden, tmp_path, refused):
    params, config = load_checkpoint(base)
    flat = flatten(params)
    flat["stack/mhc_phi_res"][0, 0, 0] = float("nan")
    save_checkpoint(tmp_path / "bad.safetensors", unflatten(flat), config)

    tokenizer = golden / "tokenizer.model"
    said = refused(tmp_path / "bad.safetensors", "--tokenizer", tokenizer, "--out", tmp_path / "model.cact")

    assert "its parameter stack/mhc_phi_res holds 1 numbers that are not finite" in said


def test_a_missing_library_is_named_with_what_to_install(base, tmp_path):
    blocked = "import sys; sys.modules['sentencepiece'] = None; from needle.cli import main; main()"
    command = [sys.executable, "-c", blocked, "build", base, "--out", tmp_path / "model.cact"]

    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)

    assert done.returncode == 2
    assert "needle-tui[train]" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_safetensors_library_that_is_missing_is_named(base, tmp_path):
    params, config = load_checkpoint(base)
    save_checkpoint(tmp_path / "tiny.safetensors", params, config)
    blocked = "import sys; sys.modules['safetensors'] = None; from needle.cli import main; main()"
    command = [sys.executable, "-c", blocked, "build", tmp_path / "tiny.safetensors", "--out", tmp_path / "m"]
    command += ["--tokenizer", base.parent / "tokenizer.model"]

    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=120)

    assert done.returncode == 2
    assert "needs safetensors, which is not installed" in done.stderr
