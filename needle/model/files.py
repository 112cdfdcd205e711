"""Writing and reading files of arrays: safetensors and plain pickles, each replaced as a whole. No JAX."""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from needle.data.safetensors_header import read_header
from needle.errors import InputError, RunError

Array = np.ndarray[Any, np.dtype[Any]]


def write_safetensors(path: Path | str, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays by name and text by name; a crash leaves the old file or the new, never a part.

    Every array is made C-ordered first: safetensors 0.8.0 writes wrong values, without an error, for any
    other order. Raises RunError when the file cannot be written.
    """
    from safetensors.numpy import save_file

    # `ascontiguousarray` would turn an array of no axes into one of one.
    ordered = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    with _replacing(Path(path)) as temporary:
        save_file(ordered, temporary, metadata=dict(metadata))


def read_safetensors(path: Path | str) -> tuple[dict[str, Array], dict[str, str]]:
    """(arrays by name, text by name). Raises InputError for a file that is not whole."""
    import ml_dtypes  # noqa: F401 - teaches numpy the name bfloat16
    from safetensors.numpy import load_file

    header = read_header(path)
    try:
        return load_file(path), header.metadata
    except Exception as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None


def write_pickle(path: Path | str, value: Mapping[str, Any]) -> None:
    """Write a nested dict of arrays and plain values as a pickle, replaced as a whole. Raises RunError."""
    with _replacing(Path(path)) as temporary, temporary.open("wb") as file:
        pickle.dump(_plain(value), file, protocol=4)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place, on disk, when the block ends well."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(descriptor)
    except OSError as error:
        raise _unwritable(path, error) from None
    temporary = Path(name)
    try:
        yield temporary
        _settle(temporary)
        os.replace(temporary, path)
        _flush_directory(path.parent)
    except Exception as error:
        raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _settle(temporary: Path) -> None:
    """Content on disk, and readable by others as any new file is."""
    os.chmod(temporary, 0o644)
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_directory(folder: Path) -> None:
    """The new name on disk too, where the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: Exception) -> RunError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return RunError(
        f"cannot be written: {reason}",
        where=str(path),
        remedy="check that its directory exists, may be written, and has free space",
    )


def _plain(value: Any) -> Any:
    """Arrays of any library as numpy arrays, mappings as dicts; the rest as it is."""
    if isinstance(value, Mapping):
        return {name: _plain(below) for name, below in value.items()}
    return np.asarray(value, order="C") if hasattr(value, "__array__") else value
