"""Which NVIDIA devices JAX sees and how it numbers them, whole cards and MIG slices."""

import pytest

from needle.devices.visible import Entity, hides_all, jax_ids

SLICED = (
    Entity("GPU 0", 0, "GPU-0aaa"),
    Entity("MIG 1:0", 1, "MIG-1a"),
    Entity("MIG 1:1", 1, "MIG-1b"),
    Entity("MIG 2:0", 2, "MIG-2a"),
)
WHOLE = tuple(Entity(f"GPU {card}", card, f"GPU-{card}aaa") for card in range(3))


@pytest.mark.parametrize(
    ("visible", "ids"),
    [
        (None, ["GPU 0", "cuda:0", "MIG 1:1", "MIG 2:0"]),
        ("MIG-1b", ["GPU 0", "MIG 1:0", "cuda:0", "MIG 2:0"]),
        ("MIG-2a,MIG-1a", ["GPU 0", "MIG 1:0", "MIG 1:1", "cuda:0"]),
        ("0", ["cuda:0", "MIG 1:0", "MIG 1:1", "MIG 2:0"]),
        ("2", ["GPU 0", "MIG 1:0", "MIG 1:1", "cuda:0"]),
        ("GPU-0", ["cuda:0", "MIG 1:0", "MIG 1:1", "MIG 2:0"]),
        ("0,1", ["GPU 0", "cuda:0", "MIG 1:1", "MIG 2:0"]),
    ],
)
def test_cuda_shows_one_slice_and_no_whole_card_beside_it(visible, ids):
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert list(jax_ids(SLICED, environment)) == ids


@pytest.mark.parametrize(
    ("jax_filter", "ids"),
    [
        ("all", ["cuda:0", "GPU 1", "cuda:1"]),
        ("1", ["GPU 0", "GPU 1", "cuda:0"]),
        ("7", ["GPU 0", "GPU 1", "GPU 2"]),
    ],
)
def test_jaxs_own_filter_counts_among_what_cuda_shows(jax_filter, ids):
    environment = {"CUDA_VISIBLE_DEVICES": "0,2", "JAX_CUDA_VISIBLE_DEVICES": jax_filter}
    assert list(jax_ids(WHOLE, environment)) == ids


def test_a_list_ends_at_a_device_that_is_named_twice():
    assert list(jax_ids(WHOLE, {"CUDA_VISIBLE_DEVICES": "1,1,2"})) == ["GPU 0", "cuda:0", "GPU 2"]


@pytest.mark.parametrize(
    ("value", "hides"), [(None, False), ("", True), ("-1", True), ("NoDevFiles", True), ("0", False)]
)
def test_a_list_that_begins_with_no_device_hides_all(value, hides):
    assert hides_all(value) is hides
