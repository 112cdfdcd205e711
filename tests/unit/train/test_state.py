import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from needle.errors import RunError
from needle.train import state as states
from needle.train.optimizer import make_optimizer
from needle.train.state import TrainState, load, newest
from needle.train.step import initial_state

INPUTS = {"the data": "d1", "the base model": "b1"}
OPTIMIZER = make_optimizer(1e-2, 10)


def fresh(rank: int = 2) -> TrainState:
    adapter = {"a/kernel": {"A": jnp.ones((3, 4, rank)), "B": jnp.zeros((3, rank, 5))}}
    return initial_state(adapter, OPTIMIZER)


def after(steps: int) -> TrainState:
    state = fresh()
    for number in range(steps):
        gradient = jax.tree.map(lambda leaf, n=number: jnp.full_like(leaf, 0.1 * (n + 1)), state.adapter)
        updates, moments = OPTIMIZER.transform.update(gradient, state.optimizer, state.adapter)
        adapter = jax.tree.map(jnp.add, state.adapter, updates)
        state = TrainState(state.step + 1, adapter, moments, state.finite)
    return state


def save(checkpoints: Path, state: TrainState, inputs: dict[str, str]) -> Path:
    """Save, where that must write something."""
    directory = states.save(checkpoints, state, inputs)
    assert directory is not None
    return directory


def assert_same(one: TrainState, other: TrainState) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


def test_a_state_comes_back_bit_for_bit(tmp_path: Path) -> None:
    directory = save(tmp_path, after(3), INPUTS)
    assert_same(load(directory, fresh(), INPUTS), after(3))


def test_a_loaded_state_can_be_taken_over_by_a_step(tmp_path: Path) -> None:
    loaded = load(save(tmp_path, after(2), INPUTS), fresh(), INPUTS)
    taken = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf, state), donate_argnums=0)(loaded)
    assert_same(taken, after(2))


def test_the_names_on_disk_are_ours_and_stay(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    directory = save(tmp_path, after(1), INPUTS)
    assert directory.name == "step-00000001"
    assert sorted(load_file(directory / "state.safetensors")) == [
        "adam/mu/a/kernel/A",
        "adam/mu/a/kernel/B",
        "adam/nu/a/kernel/A",
        "adam/nu/a/kernel/B",
        "adapter/a/kernel/A",
        "adapter/a/kernel/B",
    ]


def test_the_newest_two_are_kept(tmp_path: Path) -> None:
    for steps in (1, 2, 3):
        save(tmp_path, after(steps), INPUTS)
    assert [path.name for path in states.complete(tmp_path)] == ["step-00000002", "step-00000003"]
    assert newest(tmp_path) == tmp_path / "step-00000003"


def test_a_step_just_saved_is_kept_even_where_later_ones_lie_around(tmp_path: Path) -> None:
    for steps in (4, 5, 2):
        save(tmp_path, after(steps), INPUTS)
    assert (tmp_path / "step-00000002").exists()


def test_a_directory_without_its_manifest_is_no_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, after(1), INPUTS)
    (save(tmp_path, after(2), INPUTS) / "manifest.json").unlink()
    assert newest(tmp_path) == tmp_path / "step-00000001"


@pytest.mark.parametrize("damage", ["shorter", "changed", "gone"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path: Path, damage: str) -> None:
    save(tmp_path, after(1), INPUTS)
    tensors = save(tmp_path, after(2), INPUTS) / "state.safetensors"
    content = bytearray(tensors.read_bytes())
    if damage == "gone":
        tensors.unlink()
    else:
        content[-1] ^= 1
        tensors.write_bytes(content[:-9] if damage == "shorter" else content)
    assert newest(tmp_path) == tmp_path / "step-00000001"
    with pytest.raises(RunError, match="damaged"):
        load(tmp_path / "step-00000002", fresh(), INPUTS)


def test_saving_a_whole_step_again_leaves_it_and_saving_a_damaged_one_replaces_it(tmp_path: Path) -> None:
    tensors = save(tmp_path, after(2), INPUTS) / "state.safetensors"
    inode = tensors.stat().st_ino
    assert states.save(tmp_path, after(2), INPUTS) is None
    assert tensors.stat().st_ino == inode
    tensors.write_bytes(b"broken")
    assert_same(load(save(tmp_path, after(2), INPUTS), fresh(), INPUTS), after(2))


def test_tidying_removes_half_a_save_and_what_comes_after_the_resumed_step(tmp_path: Path) -> None:
    save(tmp_path, after(1), INPUTS)
    (save(tmp_path, after(2), INPUTS) / "state.safetensors").write_bytes(b"broken")
    (tmp_path / ".partial-step-00000003").mkdir()
    states.tidy(tmp_path, newest(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["step-00000001"]


def test_a_checkpoint_of_another_rank_is_refused_by_name_and_shape(tmp_path: Path) -> None:
    directory = save(tmp_path, after(1), INPUTS)
    with pytest.raises(RunError, match=r" adapter/a/kernel/A is float32\[3, 4, 2\].*float32\[3, 4, 8\]"):
        load(directory, fresh(rank=8), INPUTS)


def test_a_checkpoint_of_other_kernels_is_refused_by_name(tmp_path: Path) -> None:
    directory = save(tmp_path, after(1), INPUTS)
    other = initial_state({"b/kernel": fresh().adapter["a/kernel"]}, OPTIMIZER)
    with pytest.raises(RunError, match="adam/mu/a/kernel/A is unexpected"):
        load(directory, other, INPUTS)


def test_a_changed_data_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    directory = save(tmp_path, after(1), INPUTS)
    with pytest.raises(RunError, match="cannot resume: the data changed since step 1") as caught:
        load(directory, fresh(), {**INPUTS, "the data": "d2"})
    assert "start a new run" in caught.value.remedy


def test_a_crash_between_the_files_and_the_rename_leaves_the_older_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, after(1), INPUTS)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(states.os, "rename", crash)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path, after(2), INPUTS)
    assert newest(tmp_path) == tmp_path / "step-00000001"
