"""The last probe's answers, kept as long as nothing changed that could change them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from needle.devices.records import Backend

SCHEMA = 1
_STEERING = ("JAX_", "XLA_", "CUDA_", "HIP_", "ROCR_", "HSA_", "TPU_", "LIBTPU_", "PJRT_", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Entry:
    """What the file holds: the key it is valid for, when it was learnt, and the probed backends.

    `valid_until` is 0 but where an answer may pass by itself, such as a device that did not answer.
    """

    key: str
    probed_at: float
    backends: tuple[Backend, ...]
    valid_until: float = 0.0


def key_of(parts: Iterable[object], environment: Mapping[str, str]) -> str:
    """A digest of everything that changes the answer; `parts` are plain values or dataclasses."""
    steering = sorted((name, value) for name, value in environment.items() if name.startswith(_STEERING))
    return hashlib.blake2b(msgspec.json.encode([SCHEMA, *parts, steering]), digest_size=16).hexdigest()


def cache_file(directory: Path | None, python: str) -> Path:
    """One file an interpreter, in the person's cache directory."""
    if directory is None:
        import platformdirs

        directory = Path(platformdirs.user_cache_dir("needle", appauthor=False))
    return directory / f"devices-{hashlib.blake2b(python.encode(), digest_size=6).hexdigest()}.json"


def load(path: Path, key: str, now: float) -> Entry | None:
    """The entry for this key; None when there is none, it ran out, is another's or cannot be read."""
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=Entry)
    except (OSError, msgspec.MsgspecError):
        return None
    ran_out = entry.valid_until and now > entry.valid_until
    return None if ran_out or entry.key != key else entry


def save(path: Path, entry: Entry) -> None:
    """Replace the file as a whole. A cache that cannot be written is no reason to fail."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(entry))
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
