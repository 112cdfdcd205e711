"""Archives are the published bytes, and nothing that cannot be held is written."""

import dataclasses
import struct

import numpy as np
import pytest

from needle.errors import InputError, RunError
from needle.model.archive import encode_archive, write_archive
from needle.model.archive_layout import entries, header_of, kv_window, tensor_count
from needle.model.bitmap import BitMap, parse_bit_map
from needle.model.checkpoints import load_checkpoint
from needle.model.configuration import TransformerConfig
from needle.model.parameters import parameter_shapes, unflatten
from needle.model.presets import PRESETS
from needle.model.raw_tokenizer import raw_tokenizer, read_raw_tokenizer

SMALL = TransformerConfig(
    vocab_size=32, d_model=16, num_heads=2, num_kv_heads=1, num_layers=2, max_seq_len=64,
    engram_slots=8, engram_layers=(1,),
)  # fmt: skip


def small_weights(config: TransformerConfig = SMALL) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        path: random.standard_normal(shape).astype(np.float32)
        for path, shape in parameter_shapes(config).items()
    }


@pytest.fixture
def tokenizer(golden):
    return raw_tokenizer(golden / "tokenizer.model", 1024)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("tiny_w4", "4"),
        ("tiny_w2", "2"),
        ("tiny_mixed", "default=2,embedding=4,attn.q_proj=3,engram0=1.58"),
    ],
)
def test_an_archive_is_the_published_bytes(golden, tokenizer, name, bits):
    params, config = load_checkpoint(golden / "tiny.pkl")

    archive = encode_archive(params, config, parse_bit_map(bits), tokenizer)

    assert archive.content == (golden / f"{name}.cact").read_bytes()


def test_the_tokenizer_in_an_archive_has_every_piece_with_its_kind(tokenizer):
    pieces = read_raw_tokenizer(tokenizer)

    assert len(pieces) == 1024
    assert [pieces[number].kind for number in (0, 1, 2, 3, 4, 13, 14, 300)] == [2, 2, 2, 1, 3, 3, 4, 0]
    assert [pieces[number].text for number in (3, 10, 14)] == ["<unk>", "<tool_call>", "<0x00>"]


def test_a_tokenizer_of_another_vocabulary_is_refused(golden):
    with pytest.raises(InputError, match=r"has 1,024 pieces, but the model has a vocabulary of 8,192"):
        raw_tokenizer(golden / "tokenizer.model", 8192)


def test_the_published_geometry_keeps_704_positions():
    assert kv_window(PRESETS["needle2"]) == 704


def test_the_window_is_what_was_configured_when_that_is_less():
    assert kv_window(dataclasses.replace(PRESETS["needle2"], kv_window=256)) == 256
    assert kv_window(dataclasses.replace(PRESETS["needle2"], kv_window=4096)) == 704


def test_a_large_model_keeps_160_positions_and_a_short_one_its_whole_length():
    large = dataclasses.replace(PRESETS["needle2"], d_model=4096, attn_dim=4096, num_layers=60)

    assert kv_window(large) == 160
    assert kv_window(SMALL) == 64


@pytest.mark.parametrize("heads", [[], ["confidence_head"], ["contrastive_head", "confidence_head"]])
@pytest.mark.parametrize("sites", [(), (0,), (0, 1)])
def test_tensors_are_counted_without_being_listed(heads, sites):
    config = dataclasses.replace(SMALL, engram_layers=sites)

    assert tensor_count(config.num_layers, len(sites), len(heads)) == len(entries(config, heads)) + 1


def test_every_tensor_begins_at_a_multiple_of_64_and_the_last_ends_the_file():
    content = encode_archive(unflatten(small_weights()), SMALL, BitMap(3), b"tokenizer").content
    (count,) = struct.unpack_from("<I", content, 4)
    records = [struct.unpack_from("<BBH4IQQII", content, 120 + 112 + 44 * number) for number in range(count)]

    assert all(record[7] % 64 == 0 for record in records)
    assert content[records[-1][7] :] == b"tokenizer"


def test_a_model_of_five_sites_does_not_fit():
    config = dataclasses.replace(SMALL, num_layers=6, engram_layers=(0, 1, 2, 3, 4))

    with pytest.raises(InputError, match="2 engram orders and 5 sites; an archive holds at most 4 of each"):
        header_of(config, 0, 28)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("stack/layers/block/self_attn/k_proj/kernel", np.nan, "numbers that are not finite"),
        ("stack/layers/block/hadamard_mlp/d1", 1e6, "numbers beyond float16"),
        ("stack/layers/block/self_attn/q_proj/kernel", 1e6, "too large to be quantised"),
    ],
)
def test_a_number_that_cannot_ship_is_named_by_its_leaf_and_layer(path, value, words):
    weights = small_weights()
    weights[path][1].flat[3] = value

    with pytest.raises(InputError) as raised:
        encode_archive(unflatten(weights), SMALL, BitMap(4), b"")

    assert f"{path}, layer 1, holds" in raised.value.message
    assert words in raised.value.message


def test_writing_replaces_the_whole_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "model.cact"
    target.write_bytes(b"old")

    write_archive(target, b"new")

    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_that_cannot_be_written_is_said_in_words(tmp_path):
    with pytest.raises(RunError, match="cannot be written: No such file or directory"):
        write_archive(tmp_path / "missing" / "model.cact", b"")
