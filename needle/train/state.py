"""Train state on disk: `save` and `load`, the only two ways in and out.

    checkpoints/step-00000120/state.safetensors    adapter/<leaf>, adam/mu/<leaf>, adam/nu/<leaf>
                              manifest.json        written last; a directory without it is not a checkpoint

The names of the tensors are ours, not positions in Optax's chain, so that the chain may change. A step is
written into a hidden directory, synced and renamed: a crash at any moment leaves the older checkpoints whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import optax

from needle.errors import RunError
from needle.model.files import read_safetensors, write_safetensors
from needle.model.lora import Adapter

FORMAT = "needle-train-state"
_TENSORS = "state.safetensors"
_MANIFEST = "manifest.json"
_PARTIAL = ".partial-"


class TrainState(NamedTuple):
    """What a step changes. `finite` turns False at the first non-finite step, after which nothing changes.

    step () int32: optimiser steps done; adapter: float32; optimizer: Optax's state; finite () bool.
    """

    step: jax.Array
    adapter: Adapter
    optimizer: optax.OptState
    finite: jax.Array


class Manifest(msgspec.Struct, frozen=True):
    """`manifest.json`. `inputs` are digests of what training reads, so that a resume continues the same."""

    step: int
    sha256: str
    size_bytes: int
    inputs: dict[str, str]
    format: str = FORMAT
    version: int = 1


def save(checkpoints: Path, state: TrainState, inputs: dict[str, str], *, keep: int = 2) -> Path | None:
    """Write one complete checkpoint, then remove all but the newest `keep`. Returns its directory.

    Returns None and writes nothing when the step is there already, whole: its state is a function of its
    number.
    """
    step = int(state.step)
    final, partial = checkpoints / f"step-{step:08d}", checkpoints / f"{_PARTIAL}step-{step:08d}"
    if is_whole(final):
        return None
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    tensors = partial / _TENSORS
    write_safetensors(tensors, _flatten(state), {"step": str(step)})
    manifest = Manifest(step, _digest(tensors), tensors.stat().st_size, inputs)
    _write_synced(partial / _MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    _sync(partial)
    shutil.rmtree(final, ignore_errors=True)
    os.rename(partial, final)
    _sync(checkpoints)
    for old in complete(checkpoints)[:-keep]:
        if old != final:
            shutil.rmtree(old, ignore_errors=True)
    return final


def load(directory: Path, like: TrainState, inputs: dict[str, str]) -> TrainState:
    """The state of one complete checkpoint, with the structure of `like`.

    Raises RunError when a tensor is missing, unexpected or of another shape, when the file is damaged, or
    when `inputs` differ from those it was trained on.
    """
    manifest = _manifest(directory)
    if manifest is None or not is_whole(directory):
        raise RunError("the checkpoint is damaged", where=str(directory))
    changed = [name for name, digest in inputs.items() if manifest.inputs.get(name) != digest]
    if changed:
        raise RunError(
            f"cannot resume: {' and '.join(changed)} changed since step {manifest.step} was saved",
            remedy="put the old file back, or start a new run",
        )
    tensors, _ = read_safetensors(directory / _TENSORS)
    _check_leaves(directory, tensors, like)
    return _unflatten(tensors, manifest.step, like)


def newest(checkpoints: Path) -> Path | None:
    """The newest checkpoint whose content is what its manifest says; None without one."""
    return next((one for one in reversed(complete(checkpoints)) if is_whole(one)), None)


def is_whole(directory: Path) -> bool:
    """Whether a checkpoint is there and holds exactly what its manifest says."""
    manifest = _manifest(directory)
    tensors = directory / _TENSORS
    try:
        return (
            manifest is not None
            and tensors.stat().st_size == manifest.size_bytes
            and _digest(tensors) == manifest.sha256
        )
    except OSError:
        return False


def complete(checkpoints: Path) -> list[Path]:
    """Every checkpoint that has its manifest, oldest step first."""
    return sorted(one for one in checkpoints.glob("step-*") if (one / _MANIFEST).is_file())


def tidy(checkpoints: Path, resumed: Path | None) -> None:
    """Remove what a killed save left behind, and steps after the resumed one: they are damaged."""
    later = [one for one in checkpoints.glob("step-*") if resumed is None or one.name > resumed.name]
    for left in (*checkpoints.glob(f"{_PARTIAL}*"), *later):
        shutil.rmtree(left, ignore_errors=True)


def _flatten(state: TrainState) -> dict[str, np.ndarray]:
    moments = {name: optax.tree_utils.tree_get(state.optimizer, name) for name in ("mu", "nu")}
    trees = {"adapter": state.adapter, "adam/mu": moments["mu"], "adam/nu": moments["nu"]}
    return {
        f"{prefix}/{path}/{part}": np.asarray(leaf, order="C")
        for prefix, tree in trees.items()
        for path, pair in tree.items()
        for part, leaf in pair.items()
    }


def _unflatten(tensors: dict[str, np.ndarray], step: int, like: TrainState) -> TrainState:
    def tree(prefix: str) -> Adapter:
        return {
            path: {part: jnp.asarray(tensors[f"{prefix}/{path}/{part}"]) for part in pair}
            for path, pair in like.adapter.items()
        }

    count = jnp.asarray(step, jnp.int32)
    optimizer = optax.tree_utils.tree_set(like.optimizer, mu=tree("adam/mu"), nu=tree("adam/nu"), count=count)
    state = TrainState(count, tree("adapter"), optimizer, jnp.asarray(True))
    # Each leaf gets a buffer of its own: a step takes the state's memory, and none can be taken twice.
    return jax.tree.map(jnp.array, state)


def _check_leaves(directory: Path, tensors: dict[str, np.ndarray], like: TrainState) -> None:
    """Compare names, shapes and types with those the settings ask for; says the first that differs."""
    wanted = _flatten(like)
    for name in sorted(wanted.keys() ^ tensors.keys()):
        problem = "is missing" if name in wanted else "is unexpected"
        raise RunError(f"the checkpoint does not fit: {name} {problem}", where=str(directory))
    for name, leaf in wanted.items():
        found = tensors[name]
        if (found.shape, found.dtype) != (leaf.shape, leaf.dtype):
            raise RunError(
                f"the checkpoint does not fit: {name} is {found.dtype}{list(found.shape)}, "
                f"the settings ask for {leaf.dtype}{list(leaf.shape)}",
                where=str(directory),
            )


def _manifest(directory: Path) -> Manifest | None:
    try:
        manifest = msgspec.json.decode((directory / _MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest if manifest.format == FORMAT and manifest.version == 1 else None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    """Make a rename durable; not every file system lets a directory be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
