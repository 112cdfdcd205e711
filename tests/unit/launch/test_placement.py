"""Where the data set lives, and why."""

import pytest

from needle.devices.inventory import Device
from needle.errors import InputError
from needle.launch.placement import choose_placement

GIB = 2**30
CARD = Device("cuda:0", "cuda", "RTX 3090", 0, 24 * GIB, 2 * GIB, "8.6")


def test_a_small_data_set_lives_on_the_device():
    choice = choose_placement("auto", 20 * 2**20, CARD)
    assert choice.choice == "device"
    assert "20.0 MiB" in choice.reason
    assert "22.0 GiB free on cuda:0" in choice.reason


def test_rows_33_and_34_a_data_set_over_a_quarter_of_the_free_memory_stays_on_the_host():
    choice = choose_placement("auto", 19 * GIB, CARD)
    assert choice.choice == "host"
    assert "over a quarter" in choice.rejected["device"]


def test_a_device_that_is_too_small_refuses_with_the_sizes():
    with pytest.raises(InputError) as caught:
        choose_placement("device", 23 * GIB, CARD)
    assert caught.value.field == "placement"
    assert "23.0 GiB" in str(caught.value)
    assert "22.0 GiB free" in str(caught.value)


def test_what_others_hold_counts():
    busy = Device("cuda:0", "cuda", "RTX 3090", 0, 24 * GIB, 23 * GIB, "8.6")
    assert choose_placement("auto", GIB, busy).choice == "host"


def test_a_device_that_does_not_tell_its_memory_gets_no_guess():
    silent = Device("METAL:0", "METAL", "Apple M4", 0)
    assert choose_placement("auto", GIB, silent).choice == "host"
    assert choose_placement("device", GIB, silent).choice == "device"


@pytest.mark.parametrize("requested", ["auto", "device", "host"])
def test_on_a_cpu_the_words_say_that_both_are_host_memory(requested):
    choice = choose_placement(requested, GIB, Device("cpu:0", "cpu", "cpu", 0))
    assert choice.choice == ("host" if requested == "host" else "device")
    assert "1.0 GiB" in choice.reason
