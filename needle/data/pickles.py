"""Pickle files without their danger: only numpy arrays and plain containers are ever made.

A pickle is a program. Here every name it may use stands for a class of this module that only keeps what it
is given; arrays are made afterwards, from bytes whose size was checked. Any other name is refused.
"""

from __future__ import annotations

import math
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from needle.data.files import open_input, refuse_foreign, unreadable
from needle.data.foreign import HEAD_BYTES
from needle.errors import InputError

Array: TypeAlias = "npt.NDArray[np.generic]"
Plain: TypeAlias = (
    "bool | int | float | complex | str | bytes | Array | list[Plain] | tuple[Plain, ...] | "
    "set[Plain] | frozenset[Plain] | dict[Plain, Plain] | None"
)

_WANTED = "a checkpoint or adapter as a pickle of numpy arrays"


def load_pickle(path: Path | str) -> Plain:
    """What a pickle file holds: arrays as numpy arrays, single numpy numbers as plain numbers.

    Raises InputError when it asks for anything but arrays and plain containers, naming what it asked for, or
    when it cannot be read.
    """
    with open_input(path, _WANTED) as file:
        try:
            refuse_foreign(path, file.read(HEAD_BYTES))
            file.seek(0)
            return _realised(_Unpickler(file).load(), {})
        except _ForbiddenError as error:
            raise InputError(
                f"refused: loading it would run {error}; a checkpoint holds only arrays and plain values",
                where=str(path),
                remedy="get the checkpoint from whom you trust, best as .safetensors",
            ) from None
        except OSError as error:
            raise unreadable(path, error) from None
        # What a broken pickle raises is not foreseeable: it depends on where it is broken.
        except Exception as error:
            raise InputError(
                f"is cut short or is not a pickle: {error or type(error).__name__}",
                where=str(path),
                remedy="copy or download it again, and compare its size with the original",
            ) from None


class _ForbiddenError(Exception):
    """The dotted name that a pickle asked for and may not have."""


class _DType:
    """What a pickle says of a number format: a code such as `f4`, later a byte order."""

    def __init__(self, code: str, align: bool = False, copy: bool = False) -> None:
        self.code = code
        self.order = "|"

    def __setstate__(self, state: tuple[int, str, *tuple[object, ...]]) -> None:
        self.order = state[1]

    def numpy(self) -> np.dtype[np.generic]:
        """Numbers and truth values only; anything else could hold objects."""
        dtype = np.dtype(self.code)
        if dtype.kind not in "biufc" or self.order not in "<>|=":
            raise ValueError(f"arrays of {self.code!r} are not numbers")
        return dtype if self.order == "|" else dtype.newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """What a pickle says of an array."""

    def __init__(self, *ignored: object) -> None:
        self.shape: tuple[int, ...] = ()
        self.dtype: _DType | None = None
        self.fortran = False
        self.content = b""

    def __setstate__(self, state: tuple[int, tuple[int, ...], _DType, bool, bytes]) -> None:
        _, self.shape, self.dtype, self.fortran, self.content = state

    def numpy(self) -> Array:
        """The array, writable and in native byte order. Raises ValueError when its parts do not agree."""
        if not isinstance(self.dtype, _DType) or not isinstance(self.content, (bytes, bytearray)):
            raise ValueError("an array is not made of numbers")
        dtype = self.dtype.numpy()
        if any(not isinstance(size, int) or size < 0 for size in self.shape):
            raise ValueError("an array has an impossible shape")
        if math.prod(self.shape) * dtype.itemsize != len(self.content):
            raise ValueError("an array's content does not fill its shape")
        flat = np.frombuffer(self.content, dtype).astype(dtype.newbyteorder("="))
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


class _Scalar:
    """What a pickle says of one numpy number."""

    def __init__(self, dtype: _DType, content: bytes) -> None:
        self.dtype = dtype
        self.content = content

    def number(self) -> bool | int | float | complex:
        """The plain number. Raises ValueError when its bytes do not fit its format."""
        dtype = self.dtype.numpy()
        if len(self.content) != dtype.itemsize:
            raise ValueError("a number's content does not fit its format")
        return np.frombuffer(self.content, dtype)[0].item()  # type: ignore[no-any-return]


class _ArrayType:
    """Stands for `numpy.ndarray`, which pickles name without making one."""


def _from_buffer(content: bytes, dtype: _DType, shape: tuple[int, ...], order: str) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", content))
    return array


def _bytes_from_text(text: str, encoding: str) -> bytes:
    """Protocol 2 and below spell bytes as text."""
    if encoding != "latin1":
        raise ValueError(f"bytes are spelled in {encoding!r}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Protocol 2 and below spell empty bytes as a call of their type."""
    return b""


_ALLOWED: dict[str, Callable[..., object]] = {
    "numpy.ndarray": _ArrayType,
    "numpy.dtype": _DType,
    "collections.OrderedDict": OrderedDict,
    "_codecs.encode": _bytes_from_text,
    **{f"{builtins}.bytes": _no_bytes for builtins in ("builtins", "__builtin__")},
    **{f"{builtins}.set": set for builtins in ("builtins", "__builtin__")},
    **{f"{builtins}.frozenset": frozenset for builtins in ("builtins", "__builtin__")},
    **{f"numpy.{core}.multiarray._reconstruct": _Array for core in ("core", "_core")},
    **{f"numpy.{core}.multiarray.scalar": _Scalar for core in ("core", "_core")},
    **{f"numpy.{core}.numeric._frombuffer": _from_buffer for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    """Gives a pickle nothing but the stand-ins above."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        allowed = _ALLOWED.get(f"{module}.{name}")
        if allowed is None:
            raise _ForbiddenError(f"{module}.{name}")
        return allowed

    def persistent_load(self, identifier: object) -> object:
        raise _ForbiddenError("something outside the file")


def _realised(value: object, done: dict[int, Plain]) -> Plain:
    """The value with arrays for stand-ins. `done` keeps what is shared shared, and stops at cycles."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, _Scalar):
        return value.number()
    if isinstance(value, _Array):
        return done.setdefault(id(value), value.numpy())
    return _realised_container(value, done)


def _realised_container(value: object, done: dict[int, Plain]) -> Plain:
    if isinstance(value, dict):
        made: dict[Plain, Plain] = {}
        done[id(value)] = made
        made.update((_realised(key, done), _realised(item, done)) for key, item in value.items())
        return made
    if isinstance(value, list):
        items: list[Plain] = []
        done[id(value)] = items
        items.extend(_realised(item, done) for item in value)
        return items
    if isinstance(value, (tuple, set, frozenset)):
        kind = type(value)
        return done.setdefault(id(value), kind(_realised(item, done) for item in value))
    raise ValueError(f"it holds a {type(value).__name__.strip('_')}, which is not plain")
