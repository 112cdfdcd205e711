"""Maps of bits: what they say, and how they answer when they say nothing that exists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.errors import InputError
from needle.model.bitmap import BitMap, canonical_name, parse_bit_map

MIXED = "default=2,embedding=4,attn.q_proj=3,engram0=1.58"


def test_the_longest_name_that_begins_a_leafs_name_decides():
    bit_map = parse_bit_map("default=2,attn=3,attn.q_proj=4")

    assert [bit_map.bits_of(name) for name in ("attn.q_proj", "attn.k_proj", "embedding")] == [4, 3, 2]


def test_a_site_is_not_the_beginning_of_a_longer_number():
    bit_map = parse_bit_map("default=4,engram1=2")

    assert bit_map.bits_of("engram1.tables") == 2
    assert bit_map.bits_of("engram10.tables") == 4


@pytest.mark.parametrize("text", [MIXED, "default=4", "default=3,mhc_phi=4,mtp.q_proj=2"])
def test_a_map_reads_back_from_its_spelling(text):
    assert str(parse_bit_map(text)) == text


@pytest.mark.parametrize(("text", "default"), [("", 4), ("2", 2), (" 1.58 ", 1.58), ("embedding=2", 4)])
def test_a_number_alone_is_the_default_and_without_one_it_is_4(text, default):
    assert parse_bit_map(text).default == default


def test_the_order_of_entries_and_spaces_do_not_matter():
    names = ("embedding", "attn.q_proj", "engram0.tables", "mhc_phi_res")

    assert parse_bit_map(" engram0 = 1.58 , attn.q_proj=3,embedding=4, default=2").same_as(
        parse_bit_map(MIXED), names
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("default=5", "default cannot have 5 bits; weights have 1.58, 2, 3 or 4"),
        ("embedding=four", "embedding cannot have four bits"),
        ("embedding=", "embedding cannot have no bits"),
        ("embedding=nan", "embedding cannot have nan bits"),
        ("atn.q_proj=3", "no weights are called 'atn.q_proj'; did you mean 'attn.q_proj'?"),
        ("engram0.tabels=2", "did you mean 'engram0.tables'?"),
        ("engram.tables=2", "did you mean 'engram0.tables'?"),
        ("engram2=2", "there is no engram2: this model has 2 engram sites, counted from 0"),
        ("zzz=2", "known are default, embedding, attn.<projection>"),
        ("embedding=2,embedding=4", "embedding is given twice"),
        ("default=2,", "an entry is empty"),
        ("small", "'small' has no '='"),
        ("=4", "no weights are called ''"),
    ],
)
def test_a_wrong_map_is_answered_with_what_is_wrong_and_the_nearest_name(text, words):
    with pytest.raises(InputError) as raised:
        parse_bit_map(text, engram_sites=2)

    assert words in str(raised.value)
    assert raised.value.field == "bits-map"


@given(st.text(alphabet="=,.0123458 abdefgilmnqrt_", max_size=40))
def test_any_text_is_refused_in_words_or_a_map_with_a_spelling(text):
    try:
        bit_map = parse_bit_map(text)
    except InputError:
        return
    assert parse_bit_map(str(bit_map)) == bit_map


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("embedding/embedding", "embedding"),
        ("stack/layers/block/self_attn/gate_proj/kernel", "attn.gate_proj"),
        ("stack/mhc_phi_res", "mhc_phi_res"),
        ("engrams_1/embedding", "engram1.tables"),
        ("engrams_0/value_proj/kernel", "engram0.value_proj"),
        ("mtp_block/self_attn/v_proj/kernel", "mtp.v_proj"),
        ("confidence_head/proj/kernel", ""),
        ("stack/mhc_b_res", ""),
        ("stack/layers/block/self_attn/q_norm/scale", ""),
    ],
)
def test_every_quantised_leaf_has_a_name_for_maps(path, name):
    assert canonical_name(path) == name


def test_maps_are_compared_by_what_they_give_the_weights():
    assert BitMap(4).same_as(parse_bit_map("default=2,embedding=4,attn=4"), ["embedding", "attn.q_proj"])
    assert not BitMap(4).same_as(BitMap(2), ["embedding"])
