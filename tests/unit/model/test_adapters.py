"""Adapters come back as they were saved; what is not an adapter, or another model's, is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from needle.errors import InputError
from needle.model.adapters import load_adapter, require_fits, save_adapter
from needle.model.checkpoints import load_checkpoint
from needle.model.files import read_safetensors, write_safetensors
from needle.model.lora import init_lora, lora_targets

Q_PROJ = "stack/layers/block/self_attn/q_proj/kernel"


@pytest.fixture(scope="module")
def published(request):
    return load_adapter(request.config.rootpath / "tests" / "golden" / "adapter_auto.pkl")


@pytest.fixture(scope="module")
def tiny(request):
    return load_checkpoint(request.config.rootpath / "tests" / "golden" / "tiny.pkl")


@pytest.mark.parametrize("suffix", [".pkl", ".safetensors"])
@pytest.mark.parametrize("rounding", [(None, None), (4, "default=4,embedding=4")])
def test_an_adapter_comes_back_as_it_was_saved(published, tmp_path, suffix, rounding):
    wanted = replace(published, base="née.pkl", seed=7, qat_bits=rounding[0], qat_bits_map=rounding[1])
    save_adapter(tmp_path / f"a{suffix}", wanted)
    found = load_adapter(tmp_path / f"a{suffix}")
    assert replace(found, lora={}) == replace(wanted, lora={})
    for path, matrices in wanted.lora.items():
        for name, matrix in matrices.items():
            np.testing.assert_array_equal(found.lora[path][name], matrix)


def test_a_safetensors_adapter_has_the_published_names(published, tmp_path):
    save_adapter(tmp_path / "a.safetensors", published)
    tensors, metadata = read_safetensors(tmp_path / "a.safetensors")
    assert f"lora/{Q_PROJ}/A" in tensors
    assert len(tensors) == 10
    assert {name: json.loads(metadata[name]) for name in ("scale", "base", "rank", "seed")} == {
        "scale": 2.0,
        "base": "tiny.pkl",
        "rank": 4,
        "seed": 0,
    }


def test_a_base_model_is_not_taken_for_an_adapter(golden):
    with pytest.raises(InputError, match="it is a base model"):
        load_adapter(golden / "tiny.pkl")


def test_matrices_that_do_not_fit_each_other_are_refused(published, tmp_path):
    save_adapter(tmp_path / "a.safetensors", published)
    tensors, metadata = read_safetensors(tmp_path / "a.safetensors")
    cut = {**tensors, f"lora/{Q_PROJ}/B": tensors[f"lora/{Q_PROJ}/B"][:, :3]}
    write_safetensors(tmp_path / "a.safetensors", cut, metadata)
    with pytest.raises(InputError, match=r"A \(3, 64, 4\) and B \(3, 3, 64\) of .*q_proj"):
        load_adapter(tmp_path / "a.safetensors")


def test_an_adapter_that_is_not_finite_is_refused(published, tmp_path):
    broken = {"A": published.lora[Q_PROJ]["A"] * np.nan, "B": published.lora[Q_PROJ]["B"]}
    save_adapter(tmp_path / "a.pkl", replace(published, lora={**published.lora, Q_PROJ: broken}))
    with pytest.raises(InputError, match="not finite"):
        load_adapter(tmp_path / "a.pkl")


def test_an_adapter_of_another_geometry_names_the_base_it_wants(published, tiny):
    require_fits(published, tiny[1])
    with pytest.raises(InputError, match=r"is \(3, 64, 64\).*\(4, 64, 64\)\n.*tiny\.pkl"):
        require_fits(published, replace(tiny[1], num_layers=4))


def test_a_kernel_of_zeros_gets_no_adapter(tiny):
    params, _ = tiny
    attention = params["stack"]["layers"]["block"]["self_attn"]
    dead = {**attention, "q_proj": {"kernel": attention["q_proj"]["kernel"] * 0 + 1e-7}}
    changed = {"stack": {"layers": {"block": {"self_attn": dead}}}}
    assert [path.split("/")[-2] for path in lora_targets(changed)] == [
        "gate_proj",
        "k_proj",
        "out_proj",
        "v_proj",
    ]


def test_a_kernel_starts_alike_only_where_its_place_among_those_trained_is_alike(tiny):
    whole, part = init_lora(tiny[0], 4, 0), init_lora(tiny[0], 4, 0, ("q", "v"))
    assert [path.split("/")[-2] for path in part] == ["q_proj", "v_proj"]
    assert all(part[path]["A"].shape == whole[path]["A"].shape for path in part)


def test_named_kernels_that_hold_only_zeros_are_told_by_the_setting(tiny):
    attention = tiny[0]["stack"]["layers"]["block"]["self_attn"]
    dead = {**attention, "q_proj": {"kernel": attention["q_proj"]["kernel"] * 0}}
    with pytest.raises(InputError, match=r"kernels q hold only zeros\n.*--lora-targets"):
        init_lora({"stack": {"layers": {"block": {"self_attn": dead}}}}, 4, 0, ("q",))


def test_a_model_with_nothing_to_adapt_is_refused():
    with pytest.raises(InputError, match=r"nothing to adapt: .* gate, k, out, q, v hold only zeros"):
        init_lora({"stack": {}}, rank=4, seed=0)
