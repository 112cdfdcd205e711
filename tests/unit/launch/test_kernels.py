"""Which attention kernel and precision, with a reason for each. Ids are rows of the field notes."""

import pytest

from needle.errors import InputError
from needle.launch.kernels import KernelProbe, choose_kernel, choose_precision

PASSED = KernelProbe(True, "")
NAN = KernelProbe(False, "the gradient of q is NaN")


def choose(requested="auto", **changes):
    """The choice for Needle 2 on an H100, causal, with a probe that passed; `changes` differ."""
    case = {
        "platform": "cuda",
        "capability": "9.0",
        "dtype": "bfloat16",
        "head_dim": 64,
        "num_heads": 8,
        "num_kv_heads": 4,
        "mask_kind": "causal",
        "length": 1024,
        "jax_version": "0.10.2",
        "probe": PASSED,
    }
    return choose_kernel(requested, **(case | changes))


def test_auto_takes_cudnn_when_its_rules_hold_and_it_was_tried():
    decision = choose()
    assert decision.choice == "cudnn"
    assert "tried forward and backward" in decision.reason
    assert decision.rejected.keys() == {"xla", "manual"}


@pytest.mark.parametrize("mask_kind", ["causal", "lengths", "window"])
def test_masks_that_cudnn_knows_need_no_bias(mask_kind):
    assert choose(mask_kind=mask_kind, length=999).choice == "cudnn"


RULES = [
    ("26-dtype", {"dtype": "float32"}, "bfloat16 or float16, not float32"),
    ("26-head-step", {"head_dim": 60}, "multiple of 8 and at most 256 here, not 60"),
    ("26-head-ampere", {"head_dim": 192, "capability": "8.0"}, "at most 128 here, not 192"),
    ("26-head-hopper", {"head_dim": 264}, "at most 256 here, not 264"),
    ("26-head-old-jax", {"head_dim": 192, "jax_version": "0.4.38"}, "at most 128 here, not 192"),
    ("26-head-unknown-device", {"head_dim": 192, "capability": ""}, "at most 128 here, not 192"),
    ("1.2-grouped-heads", {"num_heads": 8, "num_kv_heads": 3}, "not 8 and 3"),
    ("1.2-turing", {"capability": "7.5"}, "compute capability 8.0 (Ampere) or newer, this device has 7.5"),
    ("1.2-cpu", {"platform": "cpu", "capability": ""}, "it is NVIDIA's, and this runs on CPU"),
    ("1.2-rocm", {"platform": "rocm", "capability": "gfx942"}, "this runs on AMD GPU (ROCm)"),
    ("1.2-tpu", {"platform": "tpu", "capability": ""}, "this runs on Google TPU"),
    (
        "1.2-blackwell-ultra",
        {"capability": "10.3", "cudnn_version": 91002},
        "needs cuDNN 9.11, here is 9.10.2",
    ),
    ("1.2-odd-length", {"mask_kind": "segments", "length": 1023}, "even length, not 1023"),
    ("29", {"mask_kind": "segments", "length": 192}, "NaN at lengths like 192"),
]


@pytest.mark.parametrize(("changes", "words"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_an_impossible_cudnn_is_an_error_in_the_rules_words_when_asked_for(changes, words):
    with pytest.raises(InputError) as caught:
        choose("cudnn", **changes)
    assert words in str(caught.value)
    assert caught.value.field == "attention"


@pytest.mark.parametrize(
    ("changes", "words"),
    [row[1:] for row in RULES if row[0][:2] != "29"],
    ids=[row[0] for row in RULES if row[0][:2] != "29"],
)
def test_row_26_auto_falls_back_to_xla_and_says_why(changes, words):
    decision = choose(**changes)
    assert decision.choice == "xla"
    assert words in decision.rejected["cudnn"]


@pytest.mark.parametrize("capability", ["8.0", "8.6", "8.9", "9.0", "10.0", "12.0"])
def test_from_ampere_on_cudnn_is_possible(capability):
    assert choose(capability=capability).choice == "cudnn"


def test_blackwell_ultra_with_a_new_enough_or_unknown_cudnn_is_left_to_the_probe():
    assert choose(capability="10.3", cudnn_version=91100).choice == "cudnn"
    assert choose(capability="10.3", cudnn_version=None).choice == "cudnn"


def test_rows_27_and_28_auto_does_not_take_cudnn_when_the_probe_failed():
    decision = choose(probe=NAN)
    assert decision.choice == "xla"
    assert "the gradient of q is NaN" in decision.rejected["cudnn"]


def test_rows_27_and_28_asking_for_a_cudnn_that_failed_its_probe_is_an_error():
    with pytest.raises(InputError, match="the gradient of q is NaN"):
        choose("cudnn", probe=NAN)


def test_auto_does_not_take_cudnn_untried_but_a_person_may():
    assert "not tried" in choose(probe=None).rejected["cudnn"]
    assert choose("cudnn", probe=None).choice == "cudnn"


@pytest.mark.parametrize("mask_kind", ["segments", "arbitrary"])
def test_fact_7_auto_never_makes_cudnn_materialise_a_mask(mask_kind):
    decision = choose(mask_kind=mask_kind)
    assert decision.choice == "xla"
    assert "bias" in decision.rejected["cudnn"]


def test_fact_7_a_person_who_asks_for_cudnn_with_a_mask_is_told_its_price():
    decision = choose("cudnn", mask_kind="segments")
    assert decision.choice == "cudnn"
    assert "bias in memory" in decision.reason


def test_metal_gets_the_plain_kernel():
    decision = choose(platform="METAL", capability="", dtype="float32")
    assert decision.choice == "manual"
    assert decision.rejected.keys() == {"cudnn", "xla"}


@pytest.mark.parametrize("requested", ["xla", "manual"])
@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu", "METAL"])
def test_xla_and_manual_can_always_be_asked_for(requested, platform):
    assert choose(requested, platform=platform, dtype="float32").choice == requested


def test_every_choice_says_something_of_each_other_kernel():
    for requested in ("auto", "xla", "manual", "cudnn"):
        for mask_kind in ("causal", "segments"):
            decision = choose(requested, mask_kind=mask_kind)
            assert decision.reason
            assert {decision.choice, *decision.rejected} == {"xla", "cudnn", "manual"}
            assert all(decision.rejected.values())


def test_an_unknown_kernel_is_an_error_at_its_field():
    with pytest.raises(InputError) as caught:
        choose("flash")
    assert caught.value.field == "attention"


PRECISIONS = [
    ("cpu", "", None, "float32"),
    ("cpu", "", True, "float32"),
    ("METAL", "", True, "float32"),
    ("cuda", "9.0", True, "bfloat16"),
    ("cuda", "8.0", None, "bfloat16"),
    ("cuda", "7.5", True, "float32"),
    ("cuda", "9.0", False, "float32"),
    ("cuda", "", None, "float32"),
    ("rocm", "gfx942", True, "bfloat16"),
    ("rocm", "gfx906", True, "float32"),
    ("rocm", "", None, "float32"),
    ("tpu", "", None, "bfloat16"),
    ("oneapi", "", True, "bfloat16"),
    ("oneapi", "", None, "float32"),
]


@pytest.mark.parametrize(("platform", "capability", "bfloat16", "choice"), PRECISIONS)
def test_auto_computes_in_bfloat16_where_the_hardware_has_it(platform, capability, bfloat16, choice):
    decision = choose_precision("auto", platform, capability, bfloat16)
    assert decision.choice == choice
    assert decision.reason
    assert all(decision.rejected.values())
    assert len(decision.rejected) == 1


def test_asking_for_bfloat16_where_it_is_slow_is_allowed_with_the_price():
    decision = choose_precision("bfloat16", "cuda", "7.5")
    assert decision.choice == "bfloat16"
    assert "slower than float32" in decision.reason


def test_asking_for_bfloat16_where_the_probe_found_it_wrong_is_an_error():
    with pytest.raises(InputError) as caught:
        choose_precision("bfloat16", "METAL", "", bfloat16=False)
    assert caught.value.field == "precision"


def test_float32_can_always_be_asked_for():
    assert choose_precision("float32", "cuda", "9.0", True).choice == "float32"


def test_an_unknown_precision_is_an_error_at_its_field():
    with pytest.raises(InputError) as caught:
        choose_precision("fp8", "cuda", "9.0")
    assert caught.value.field == "precision"
