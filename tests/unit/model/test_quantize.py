"""Weights become the levels they ship with, number for number as published."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.errors import InputError
from needle.model.bitmap import BitMap, canonical_name, parse_bit_map
from needle.model.checkpoints import load_checkpoint
from needle.model.codebooks import CODEBOOKS, codebook
from needle.model.parameters import flatten
from needle.model.quantize import dequantise, pack, quantise, quantised_params, rows_of, unpack

WIDTHS = [1.58, 2, 3, 4]


@pytest.fixture
def reference(golden):
    return np.load(golden / "quant.npz")


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_levels_are_the_published_ones(reference, bits):
    assert np.array_equal(np.asarray(codebook(bits).levels, np.float32), reference[f"codebook_{bits}"])


@pytest.mark.parametrize("bits", WIDTHS)
def test_packed_indices_and_lengths_are_the_published_bytes(reference, bits):
    groups = quantise(reference["w"], bits)

    assert pack(groups.indices, bits) == reference[f"packed_{bits}"].tobytes()
    assert groups.norms.tobytes() == reference[f"norms_{bits}"].tobytes()


@pytest.mark.parametrize("bits", WIDTHS)
def test_rounded_weights_are_the_published_ones(reference, bits):
    rounded = dequantise(quantise(reference["w"], bits), bits, reference["w"].shape[1])

    # Equal on the machine that made them; another order of the same sums differs in the last digit.
    np.testing.assert_allclose(rounded, reference[f"cq_{bits}"], rtol=0, atol=1e-6)


@given(count=st.integers(1, 6), bits=st.sampled_from(WIDTHS), seed=st.integers(0, 99))
def test_unpacking_gives_back_the_indices(count, bits, seed):
    levels = len(codebook(bits).levels)
    indices = np.random.default_rng(seed).integers(0, levels, (count, 128)).astype(np.uint8)

    assert np.array_equal(unpack(pack(indices, bits), bits), indices.reshape(-1))


def test_ternary_indices_are_stored_as_3_0_1():
    packed = pack(np.array([[0, 1, 2, 1]], np.uint8), 1.58)

    assert packed == bytes([0b00_01_00_11])


def test_an_index_that_no_ternary_level_has_is_refused():
    with pytest.raises(ValueError, match="none of the 3 levels"):
        unpack(bytes([0b10]), 1.58)


@pytest.mark.parametrize("bits", WIDTHS)
def test_rows_of_zeros_stay_zeros(bits):
    groups = quantise(np.zeros((2, 130), np.float32), bits)

    assert not dequantise(groups, bits, 130).any()


def test_a_row_is_rounded_the_same_in_any_company():
    rows = np.random.default_rng(3).standard_normal((40, 256)).astype(np.float32)
    alone = quantise(rows[7:8], 4)

    together = quantise(rows, 4)

    assert np.array_equal(alone.indices[0], together.indices[7])
    assert np.array_equal(alone.norms[0], together.norms[7])


def test_more_bits_are_closer():
    rows = np.random.default_rng(0).standard_normal((32, 512)).astype(np.float32)

    errors = [float(np.square(dequantise(quantise(rows, bits), bits, 512) - rows).mean()) for bits in WIDTHS]

    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02 < errors[0]


def test_a_width_without_a_codebook_is_refused():
    with pytest.raises(InputError, match=r"1\.58, 2, 3 or 4 bits, not 5"):
        quantise(np.zeros((1, 128), np.float32), 5)


def test_shipped_weights_keep_their_shapes_and_leave_the_multi_token_head_behind(golden):
    params, _ = load_checkpoint(golden / "tiny.pkl")
    before = flatten(params)

    after = flatten(quantised_params(params, BitMap(4)))

    left_behind = set(before) - set(after)
    assert all(path.startswith("mtp_") or path == "contrastive_head/log_temp" for path in left_behind)
    assert any(path.startswith("mtp_block") for path in left_behind)
    assert {path: leaf.shape for path, leaf in after.items()} == {path: before[path].shape for path in after}


def test_kernels_are_rounded_along_their_input_axis_and_tables_along_their_rows(golden):
    params, _ = load_checkpoint(golden / "tiny.pkl")
    before, after = flatten(params), flatten(quantised_params(params, BitMap(2)))
    kernel, table = "stack/layers/block/self_attn/k_proj/kernel", "engrams_1/embedding"

    column = before[kernel][1, :, 5][None]
    row = before[table][1, 9][None]

    np.testing.assert_allclose(after[kernel][1, :, 5], dequantise(quantise(column, 2), 2, 64)[0], atol=1e-6)
    np.testing.assert_allclose(after[table][1, 9], dequantise(quantise(row, 2), 2, 32)[0], atol=1e-6)


def test_each_leaf_has_the_bits_of_the_map(golden):
    params, _ = load_checkpoint(golden / "tiny.pkl")
    bit_map = parse_bit_map("default=2,embedding=4,attn.q_proj=3,engram0=1.58")

    after = flatten(quantised_params(params, bit_map))

    for path, leaf in after.items():
        if canonical_name(path):
            turned = quantise(rows_of(path, leaf), bit_map.bits_of(canonical_name(path)))
            used = len(np.unique(turned.indices))
            assert used == len(CODEBOOKS[bit_map.bits_of(canonical_name(path))].levels), path


def test_what_is_not_quantised_ships_as_float16(golden):
    params, _ = load_checkpoint(golden / "tiny.pkl")
    before, after = flatten(params), flatten(quantised_params(params, BitMap(2)))

    for path in ("stack/layers/block/attn_gate", "confidence_head/proj/kernel", "engrams_0/taps"):
        assert np.array_equal(after[path], before[path].astype(np.float16).astype(np.float32)), path
