"""What a file is when it is not what it was taken for, told from its first bytes."""

from __future__ import annotations

from typing import NamedTuple

HEAD_BYTES = 512


class Foreign(NamedTuple):
    """A kind of file that is often given by mistake: `is a …`, and what to do about it."""

    what: str
    remedy: str


_ARCHIVE = "unpack it and give the file inside"
_UTF8 = "save it as UTF-8"
_LFS = Foreign("is a Git LFS pointer, not the file itself", "fetch the file with: git lfs pull")
_ANNEX = Foreign("is a git-annex pointer, not the file itself", "fetch it with: git annex get")
_ARCHIVED = Foreign("is a .cact archive, which cannot be trained", "give the checkpoint it was built from")
_PAGE = Foreign("is a web page, not the file itself", "download the file again; the link may need a login")
_SIGNATURES: tuple[tuple[bytes, Foreign], ...] = (
    (b"version https://git-lfs", _LFS),
    (b"/annex/objects/", _ANNEX),
    (b"\x1f\x8b", Foreign("is compressed with gzip", _ARCHIVE)),
    (b"PK\x03\x04", Foreign("is a zip archive", _ARCHIVE)),
    (b"\x28\xb5\x2f\xfd", Foreign("is compressed with zstd", _ARCHIVE)),
    (b"\xfd7zXZ\x00", Foreign("is compressed with xz", _ARCHIVE)),
    (b"BZh", Foreign("is compressed with bzip2", _ARCHIVE)),
    (b"PAR1", Foreign("is a Parquet table", "write it as JSON lines first")),
    (b"\x89HDF", Foreign("is an HDF5 file", "give a .safetensors or .pkl file")),
    (b"GGUF", Foreign("is a GGUF model", "give a Needle checkpoint, .safetensors or .pkl")),
    (b"\x83\x2a\xe1\x05", _ARCHIVED),
    (b"\xff\xfe", Foreign("is UTF-16 text", _UTF8)),
    (b"\xfe\xff", Foreign("is UTF-16 text", _UTF8)),
)  # fmt: skip


def recognise_foreign(head: bytes) -> Foreign | None:
    """The foreign kind of a file that begins with `head`, None when it has no known signature."""
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return _PAGE if text.startswith((b"<!doctype html", b"<html")) else None
