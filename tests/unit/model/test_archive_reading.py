"""An archive reads back as the weights that ship; anything else is refused in words."""

import dataclasses
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from needle.errors import InputError
from needle.model.archive import encode_archive
from needle.model.archive_reading import Archive, read_archive
from needle.model.bitmap import parse_bit_map
from needle.model.checkpoints import load_checkpoint, save_checkpoint
from needle.model.configuration import TransformerConfig
from needle.model.parameters import flatten, optional_shapes, parameter_shapes, unflatten
from needle.model.quantize import quantised_params
from needle.model.raw_tokenizer import raw_tokenizer

RECORDS_AT = 120 + 112
RECORD_BYTES = 44
GEOMETRIES = {
    "odd width": TransformerConfig(
        vocab_size=1024, d_model=96, attn_dim=48, num_heads=3, num_kv_heads=1, num_layers=3,
        max_seq_len=100, engram_orders=(2, 3, 4), engram_slots=10, engram_layers=(2,), mhc_lanes=2,
    ),
    "no engram": TransformerConfig(
        vocab_size=1024, d_model=32, num_heads=2, num_kv_heads=2, num_layers=1, engram_layers=(),
        rope_theta=12345.0, kv_bits=4,
    ),
    "wide": TransformerConfig(
        vocab_size=1024, d_model=256, num_heads=4, num_kv_heads=2, num_layers=2, engram_heads=4,
        engram_slots=16, engram_layers=(0, 1), contrastive_dim=24, kv_window=224,
    ),
}  # fmt: skip


def random_weights(config: TransformerConfig, *heads: str) -> dict:
    random = np.random.default_rng(1)
    shapes = parameter_shapes(config)
    for head in heads:
        shapes |= optional_shapes(config)[head]
    return unflatten({path: random.standard_normal(shape).astype("f4") for path, shape in shapes.items()})


def assert_same_weights(found: dict, wanted: dict) -> None:
    found, wanted = flatten(found), flatten(wanted)
    assert found.keys() == wanted.keys()
    for path, leaf in wanted.items():
        assert np.array_equal(found[path], leaf), path
        assert found[path].dtype == np.float32


@pytest.fixture
def tiny(golden):
    return (golden / "tiny_mixed.cact").read_bytes()


@pytest.fixture
def refusal(tmp_path):
    """A function that reads these bytes as an archive and returns the whole message of the refusal."""

    def refuse(content: bytes) -> str:
        path = tmp_path / "model.cact"
        path.write_bytes(content)
        with pytest.raises(InputError) as raised:
            read_archive(path)
        assert str(path) in str(raised.value)
        return str(raised.value)

    return refuse


@pytest.mark.parametrize(
    ("name", "bits"),
    [("tiny_w4", "4"), ("tiny_w2", "2"), ("tiny_mixed", "2,embedding=4,attn.q_proj=3,engram0=1.58")],
)
def test_a_published_archive_holds_the_weights_we_say_will_ship(golden, name, bits):
    params, config = load_checkpoint(golden / "tiny.pkl")

    archive = read_archive(golden / f"{name}.cact")

    assert_same_weights(archive.params, quantised_params(params, parse_bit_map(bits)))
    assert archive.pieces[10].text == "<tool_call>"
    geometry = dataclasses.replace(archive.config, engram_heads=0, kv_window=0, weight_bits="")
    assert geometry == config


@pytest.mark.parametrize("heads", [(), ("confidence_head",), ("contrastive_head", "confidence_head")])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_any_geometry_goes_there_and_back(golden, tmp_path, geometry, heads):
    config, bit_map = GEOMETRIES[geometry], parse_bit_map("default=3,embedding=4,mhc_phi=1.58")
    params = random_weights(config, *heads)
    tokenizer = raw_tokenizer(golden / "tokenizer.model", 1024)
    path = tmp_path / "model.cact"
    path.write_bytes(encode_archive(params, config, bit_map, tokenizer).content)

    archive = read_archive(path)

    assert_same_weights(archive.params, quantised_params(params, bit_map))
    assert (
        encode_archive(archive.params, archive.config, bit_map, tokenizer).content[:120]
        == (path.read_bytes()[:120])
    )


def test_what_was_read_says_how_many_bits_it_has(golden):
    bit_map = parse_bit_map(read_archive(golden / "tiny_mixed.cact").config.weight_bits)

    names = ("embedding", "attn.q_proj", "attn.v_proj", "engram0.tables", "engram1.tables")
    assert [bit_map.bits_of(name) for name in names] == [4, 3, 2, 1.58, 2]


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
def test_a_truncated_archive_is_called_cut_short(tiny, refusal, kept):
    message = refusal(tiny[: int(len(tiny) * kept)])

    assert "cut short" in message
    assert "build it again" in message


@pytest.mark.parametrize(
    ("position", "value", "words"),
    [
        (4 * 1, struct.pack("<I", 70), "its 70 tensors are not those of its 3 layers"),
        (4 * 1, struct.pack("<I", 2**31), "do not hold its 2147483648 records"),
        (4 * 5, struct.pack("<I", 1000), "its tokenizer has 1024 pieces for 1000 embeddings"),
        (4 * 9, struct.pack("<I", 2**32 - 1), "tensors are not those of its 4294967295 layers"),
        (4 * 7, struct.pack("<I", 0), "num_heads is 0"),
        (4 * 12, struct.pack("<I", 128), "its hadamard_size is 128"),
        (4 * 19, struct.pack("<I", 9), "its engram geometry is impossible"),
        (120, struct.pack("<f", 1.0), "its codebooks are not those of this format"),
        (RECORDS_AT, b"\x09", "embedding/embedding has the unknown format 9"),
        (RECORDS_AT + 4, struct.pack("<I", 1), "embedding/embedding has shape (1, 64)"),
        (RECORDS_AT + 28, struct.pack("<Q", 640), "takes 640 bytes, its shape needs 67,584"),
        (RECORDS_AT + 40, struct.pack("<I", 7), "embedding/embedding has 7 bits in groups of 128"),
        (RECORDS_AT + 36, struct.pack("<I", 64), "has 4 bits in groups of 64"),
        (RECORDS_AT + 44 * 68, b"\x01", "a tensor has format 1 where 4 is wanted"),
    ],
)
def test_a_changed_field_is_named(tiny, refusal, position, value, words):
    message = refusal(tiny[:position] + value + tiny[position + len(value) :])

    assert "is damaged" in message
    assert words in message


def test_a_weight_that_is_not_finite_is_named_by_leaf_and_layer(tiny, refusal):
    norm = struct.unpack_from("<Q", tiny, RECORDS_AT + RECORD_BYTES * 15 + 20)[0]

    message = refusal(tiny[:norm] + b"\x00\x7e" + tiny[norm + 2 :])

    assert "stack/layers/block/ZCRMSNorm_0/scale of layer 1 holds numbers that are not finite" in message


def test_a_checkpoint_in_its_place_is_called_what_it_is(golden, tmp_path, refusal):
    params, config = load_checkpoint(golden / "tiny.pkl")
    save_checkpoint(tmp_path / "base.safetensors", params, config)

    assert "but a pickle: a checkpoint or an adapter" in refusal((golden / "tiny.pkl").read_bytes())
    assert "but a safetensors file" in refusal((tmp_path / "base.safetensors").read_bytes())
    assert "Git LFS pointer" in refusal(b"version https://git-lfs.github.com/spec/v1\n")
    assert "is not a .cact archive" in refusal(b"something else")
    assert "is empty" in refusal(b"")


@given(position=st.integers(0, 3267), values=st.binary(min_size=1, max_size=12))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_beginning_is_refused_in_words_or_changes_nothing_but_numbers(
    tiny, tmp_path, position, values
):
    path = tmp_path / "model.cact"
    path.write_bytes(tiny[:position] + values + tiny[position + len(values) :])

    try:
        archive = read_archive(path)
    except InputError as error:
        message = str(error)
    else:
        message = ""
        assert isinstance(archive, Archive)
    assert message == "" or str(path) in message
