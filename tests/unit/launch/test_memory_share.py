"""How much of a device JAX may take when others use it too (row 37)."""

import pytest

from needle.devices.records import Device
from needle.launch.memory_share import memory_share

GIB = 1 << 30


def gpu(used, total=100 * GIB):
    return Device("cuda:0", "cuda", "NVIDIA H200", 0, total, used)


@pytest.mark.parametrize(("used_gib", "fraction"), [(20, 0.72), (50, 0.45), (90, 0.09)])
def test_row_37_of_a_shared_device_nine_tenths_of_what_is_free_are_taken(used_gib, fraction):
    share = memory_share(gpu(used_gib * GIB))
    assert share is not None
    assert share.fraction == fraction
    assert f"others hold {used_gib}.0 GiB of 100 GiB of cuda:0" in share.reason


@pytest.mark.parametrize("device", [None, gpu(0), gpu(None), gpu(GIB), gpu(100 * GIB), gpu(5, total=None)])
def test_jaxs_own_share_is_left_where_it_is_free_unknown_or_where_nothing_is_left(device):
    assert memory_share(device) is None
