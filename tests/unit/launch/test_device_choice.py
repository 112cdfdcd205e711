"""Which devices of a platform a run uses, and what it is told of the others."""

import pytest

from needle.devices.records import Backend, Device
from needle.errors import InputError
from needle.launch.device_choice import choose_devices

FIRST = Device("cuda:0", "cuda", "NVIDIA H200", 0, uuid="GPU-0aaa")
SECOND = Device("cuda:1", "cuda", "NVIDIA T4", 1, uuid="GPU-1bbb")
HIDDEN = Device("GPU 2", "cuda", "NVIDIA T4", 2, uuid="GPU-2ccc")
TWO = Backend("cuda", "works", (FIRST, SECOND))
SLICE = Device("cuda:0", "cuda", "NVIDIA H200 MIG 1g.18gb", 0, uuid="MIG-1a")
OTHER_SLICE = Device("MIG 0:1", "cuda", "NVIDIA H200 MIG 1g.18gb", 1, uuid="MIG-1b")
SLICED = Backend("cuda", "works", (SLICE,), hidden=(OTHER_SLICE,))
CPU = Backend("cpu", "works", (Device("cpu:0", "cpu", "cpu", 0),))


def chosen(requested, backend=TWO, **inherited):
    return choose_devices(requested, backend.platform, backend, inherited)


def test_the_first_computes_and_only_it_is_shown_so_that_jax_takes_no_memory_elsewhere():
    choice = chosen("")
    assert (choice.devices, choice.visible) == ((FIRST,), ("cuda:0",))
    assert choice.decision.choice == "cuda:0"
    assert "training computes on one device so far" in choice.decision.reason
    assert set(choice.decision.rejected) == {"cuda:1"}


def test_an_only_device_needs_no_variable():
    choice = chosen("", Backend("cuda", "works", (FIRST,)))
    assert (choice.devices, choice.visible, choice.decision.reason) == ((FIRST,), (), "the only one")


def test_a_filter_of_the_persons_own_is_left_alone():
    assert chosen("", JAX_CUDA_VISIBLE_DEVICES="1").visible == ()


@pytest.mark.parametrize("text", ["1", "cuda:1", "GPU-1bbb", "GPU-1", " 1 ", "1,1"])
def test_a_device_goes_by_number_id_and_uuid(text):
    choice = chosen(text)
    assert (choice.devices, choice.visible) == ((SECOND,), ("cuda:1",))


def test_several_are_shown_in_their_order_and_it_is_said_that_one_computes():
    choice = chosen("1,0")
    assert (choice.devices, choice.visible) == ((SECOND, FIRST), ("cuda:1", "cuda:0"))
    assert "one device so far: cuda:1" in choice.decision.reason


@pytest.mark.parametrize("text", ["2", "cuda:7", "GPU-9", "rocm:0", "x", "MIG-1a"])
def test_saved_settings_that_name_a_device_this_machine_lacks_are_told_those_it_has(text):
    with pytest.raises(InputError) as caught:
        chosen(text)
    assert caught.value.field == "devices"
    assert f"no device {text}" in str(caught.value)
    assert "cuda:0 NVIDIA H200, cuda:1 NVIDIA T4" in str(caught.value)


def test_a_device_that_the_person_hid_stays_hidden_and_is_named():
    backend = Backend("cuda", "works", (FIRST,), hidden=(HIDDEN,))
    with pytest.raises(InputError, match="GPU 2 is hidden by CUDA_VISIBLE_DEVICES=0") as caught:
        chosen("GPU-2ccc", backend, CUDA_VISIBLE_DEVICES="0")
    assert caught.value.field == "devices"


@pytest.mark.parametrize(("text", "uuid"), [("MIG-1b", "MIG-1b"), ("MIG 0:1", "MIG-1b"), ("0", "MIG-1a")])
def test_any_slice_of_a_card_can_be_asked_for_by_its_uuid(text, uuid):
    assert chosen(text, SLICED).visible == (uuid,)


@pytest.mark.parametrize("platform", ["cpu", "METAL", "tpu", "mychip"])
def test_where_devices_cannot_be_hidden_one_by_one_only_all_of_them_can_be_asked_for(platform):
    pair = Backend(platform, "works", tuple(Device(f"{platform}:{at}", platform, "x", at) for at in (0, 1)))
    assert choose_devices("0,1", platform, pair, {}).visible == ()
    for text, words in (("0", "cannot be chosen one by one"), ("2", f"{platform} has no {platform}:2")):
        with pytest.raises(InputError, match=words) as caught:
            choose_devices(text, platform, pair, {})
        assert caught.value.field == "devices"


def test_the_cpu_is_one_device_and_a_gpus_number_is_not_its():
    assert choose_devices("0", "cpu", CPU, {}).devices == CPU.devices
    with pytest.raises(InputError, match="there is cpu:0"):
        choose_devices("cuda:1", "cpu", CPU, {})


def test_devices_not_seen_yet_are_left_to_the_run_to_check():
    unseen = Backend("cuda", "untried")
    choice = choose_devices("0,GPU-8f", "cuda", unseen, {})
    assert (choice.devices, choice.visible) == ((), ("cuda:0", "GPU-8f"))
    assert "the run checks" in choice.decision.reason
    assert choose_devices("", "cuda", unseen, {}).visible == ()
    assert choose_devices("", "cuda", None, {}).devices == ()
