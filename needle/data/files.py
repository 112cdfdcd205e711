"""Opening a file a person named: what stands in its way is said in plain words."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from needle.data.foreign import HEAD_BYTES, recognise_foreign
from needle.errors import InputError


def open_input(path: Path | str, wanted: str) -> BinaryIO:
    """Open a regular, non-empty file for reading. Raises InputError; `wanted` says what to give instead."""
    remedy = f"give {wanted}"
    try:
        file = open(path, "rb", opener=_without_blocking)  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise InputError("no such file", where=str(path), remedy=remedy) from None
    except IsADirectoryError:
        raise InputError("is a directory", where=str(path), remedy=remedy) from None
    except PermissionError:
        raise InputError("may not be read by you", where=str(path), remedy=f"chmod +r {path}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {_reason(error)}", where=str(path), remedy=remedy) from None
    try:
        _require_content(os.fstat(file.fileno()), path, remedy)
    except InputError:
        file.close()
        raise
    return file


def unreadable(path: Path | str, error: OSError) -> InputError:
    """The error for a file that opened but could not be read to its end."""
    return InputError(
        f"cannot be read: {_reason(error)}",
        where=str(path),
        remedy="check the disk it is on, or copy it again",
    )


def refuse_foreign(path: Path | str, head: bytes) -> None:
    """Raise InputError when these first bytes are those of a well-known other kind of file."""
    foreign = recognise_foreign(head[:HEAD_BYTES])
    if foreign:
        raise InputError(foreign.what, where=str(path), remedy=foreign.remedy)


def _without_blocking(path: str, flags: int) -> int:
    """Open without waiting for the writer of a pipe, so that a pipe can be refused."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_content(status: os.stat_result, path: Path | str, remedy: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            "is not a regular file; it is read more than once",
            where=str(path),
            remedy="write it to a file first",
        )
    if status.st_size == 0:
        raise InputError("is empty", where=str(path), remedy=remedy)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).lower()
