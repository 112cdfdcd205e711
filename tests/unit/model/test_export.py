"""What an archive is built with: the adapter's own numerics, and a refusal when asked for others."""

import dataclasses

import numpy as np
import pytest

from needle.errors import InputError
from needle.model.adapters import AdapterFile, load_adapter
from needle.model.bitmap import BitMap, parse_bit_map
from needle.model.checkpoints import load_checkpoint
from needle.model.configuration import TransformerConfig
from needle.model.export import Sources, build_archive, choose_numerics, merged, summary
from needle.model.lora import merge
from needle.model.parameters import flatten

CONFIG = TransformerConfig(num_layers=3, engram_layers=(0, 2))


def adapter(qat_bits: float | None = None, qat_bits_map: str | None = None) -> AdapterFile:
    return AdapterFile({}, 2.0, "base.pkl", 4, 0, qat_bits, qat_bits_map)


@pytest.mark.parametrize(
    ("trained", "weight_bits", "chosen"),
    [
        (adapter(2), "default=3", BitMap(2)),
        (adapter(None, "default=2,embedding=4"), "", parse_bit_map("default=2,embedding=4")),
        (adapter(2, "embedding=4"), "", parse_bit_map("default=2,embedding=4")),
        (adapter(), "default=3,embedding=4", parse_bit_map("default=3,embedding=4")),
        (None, "default=3", BitMap(3)),
        (adapter(), "", BitMap(4)),
        (None, "", BitMap(4)),
    ],
)
def test_unasked_the_adapter_decides_then_the_checkpoint_then_4_bits(trained, weight_bits, chosen):
    config = dataclasses.replace(CONFIG, weight_bits=weight_bits)

    assert choose_numerics(trained, config).bit_map == chosen


def test_an_adapter_trained_without_rounding_gets_what_is_asked_and_a_warning():
    numerics = choose_numerics(adapter(), CONFIG, bits=2)

    assert numerics.bit_map == BitMap(2)
    assert "trained without rounding; 2 bits may cost accuracy" in numerics.warning


@pytest.mark.parametrize(
    ("trained", "asked", "words"),
    [
        (adapter(4), {"bits": 2}, "--bits 2 contradicts the adapter, which was trained for 4 bits"),
        (adapter(4), {"bits_map": "default=4,attn=3"}, "--bits-map default=4,attn=3 contradicts"),
        (adapter(None, "default=2,embedding=4"), {"bits": 2}, "trained for default=2,embedding=4"),
    ],
)
def test_flags_that_contradict_the_adapter_are_refused(trained, asked, words):
    with pytest.raises(InputError) as raised:
        choose_numerics(trained, CONFIG, **asked)

    assert words in raised.value.message
    assert "leave the flag out" in raised.value.remedy


@pytest.mark.parametrize(
    "asked", [{"bits": 4}, {"bits_map": "4"}, {"bits_map": "default=2,embedding=4,attn=4,engram=4,mhc=4"}]
)
def test_flags_that_say_the_same_in_other_words_are_fine(asked):
    numerics = choose_numerics(adapter(4), CONFIG, **asked)

    assert numerics.reason.startswith("asked for with --bits")
    assert not numerics.warning


def test_two_flags_for_one_thing_are_refused():
    with pytest.raises(InputError, match="two ways to say one thing"):
        choose_numerics(None, CONFIG, bits=4, bits_map="default=4")


@pytest.mark.parametrize(
    ("trained", "words"),
    [
        (adapter(8), "says it was trained for 8 bits"),
        (adapter([4]), "says it was trained for [4] bits"),
        (adapter(None, "attn.q=9"), "the adapter carries a wrong bit map 'attn.q=9'"),
        (adapter(None, 5), "the adapter carries a wrong bit map '5'"),
    ],
)
def test_an_adapter_of_unknown_numerics_is_refused(trained, words):
    with pytest.raises(InputError) as raised:
        choose_numerics(trained, CONFIG, bits=4)

    assert words in raised.value.message
    assert raised.value.remedy == "train the adapter again"


def test_a_wrong_map_inside_a_checkpoint_is_not_blamed_on_a_flag():
    config = dataclasses.replace(CONFIG, weight_bits="default=4,attention=2")

    with pytest.raises(InputError) as raised:
        choose_numerics(None, config)

    assert "the checkpoint carries a wrong bit map 'default=4,attention=2'" in raised.value.message
    assert "--bits-map" in raised.value.remedy
    assert choose_numerics(None, config, bits=2).bit_map == BitMap(2)


def test_merging_here_and_in_training_give_the_same_weights(golden):
    params, _ = load_checkpoint(golden / "tiny.pkl")
    trained = load_adapter(golden / "adapter_auto.pkl")
    flat = flatten(params)

    ours = merged(flat, trained.lora, trained.scale)

    for path, leaf in flatten(merge(params, trained.lora, trained.scale)).items():
        np.testing.assert_allclose(ours[path], leaf, rtol=0, atol=1e-6, err_msg=path)
    changed = [path for path in flat if not np.array_equal(ours[path], flat[path])]
    assert changed == sorted(trained.lora)


def test_a_half_precision_base_is_merged_in_float32():
    base = {"w/kernel": np.full((1, 2, 2), 1.0, np.float16)}
    matrices = {"w/kernel": {"A": np.full((1, 2, 1), 1e-4, "f4"), "B": np.ones((1, 1, 2), "f4")}}

    (leaf,) = merged(base, matrices, 1.0).values()

    assert leaf.dtype == np.float32
    np.testing.assert_allclose(leaf, 1.0001, rtol=1e-7)


def test_a_tuned_model_is_the_published_archive(golden):
    built = build_archive(
        Sources(golden / "tiny.pkl", golden / "tokenizer.model", golden / "adapter_auto.pkl")
    )

    assert built.archive.content == (golden / "tuned_w4.cact").read_bytes()
    assert built.warnings == ()


def test_the_summary_adds_up_to_the_file(golden):
    archive = build_archive(Sources(golden / "tiny.pkl", golden / "tokenizer.model", bits=2)).archive

    rows = {row.name: row for row in summary(archive)}

    assert sum(row.size_bytes for row in rows.values()) == len(archive.content)
    assert sum(row.tensors for row in rows.values()) == 69
    assert rows["embedding"].parameters == 1024 * 64
    assert (rows["attn.q_proj"].tensors, rows["attn.q_proj"].bits) == (3, 2)
    assert rows["norms, gates, mixing"].bits == 16
    assert rows["tokenizer"].bits is None


def test_an_adapter_of_another_geometry_is_named_with_its_base(golden, tmp_path):
    from needle.model.adapters import save_adapter

    trained = load_adapter(golden / "adapter_auto.pkl")
    wide = {
        path: {"A": np.zeros((3, 96, 4), "f4"), "B": matrices["B"]} for path, matrices in trained.lora.items()
    }
    path = tmp_path / "wide.safetensors"
    save_adapter(path, dataclasses.replace(trained, lora=wide, base="wide.pkl"))

    with pytest.raises(InputError) as raised:
        build_archive(Sources(golden / "tiny.pkl", golden / "tokenizer.model", path))

    assert str(path) in str(raised.value)
    assert "made for another model" in raised.value.message
    assert "use the base it was trained on: wide.pkl" in raised.value.remedy


def test_an_adapter_of_another_base_by_name_is_warned_about(golden, tmp_path):
    renamed = tmp_path / "renamed.pkl"
    renamed.write_bytes((golden / "tiny.pkl").read_bytes())

    built = build_archive(Sources(renamed, golden / "tokenizer.model", golden / "adapter_auto.pkl"))

    assert built.warnings == ("the adapter says it was trained on tiny.pkl, not on renamed.pkl",)
