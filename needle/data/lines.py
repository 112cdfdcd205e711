"""A file of JSON lines, one line at a time: a bad line never costs the lines around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from needle.data.jsontext import Json, JsonError, parse_json

LONGEST_LINE_BYTES = 16 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LineError(Exception):
    """A line that cannot be used; the message completes the sentence `line 7 …`. Never leaves this room."""


class JsonLine(NamedTuple):
    """One line that is not blank: its number from 1, and its value or what is wrong with it."""

    number: int
    value: Json
    problem: str = ""


def json_lines(file: BinaryIO) -> Iterator[JsonLine]:
    """Every line that is not blank, holding one in memory. Raises OSError when the file cannot be read."""
    number = 0
    while raw := file.readline(LONGEST_LINE_BYTES + 1):
        number += 1
        if len(raw) > LONGEST_LINE_BYTES and not raw.endswith(b"\n"):
            _skip_to_line_end(file)
            yield JsonLine(number, None, f"is longer than {LONGEST_LINE_BYTES // 2**20} MiB")
            continue
        content = raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw
        if content.strip():
            yield _parsed(number, content, ended=raw.endswith(b"\n"))


def _skip_to_line_end(file: BinaryIO) -> None:
    while (part := file.readline(LONGEST_LINE_BYTES)) and not part.endswith(b"\n"):
        pass


def _parsed(number: int, content: bytes, *, ended: bool) -> JsonLine:
    try:
        return JsonLine(number, parse_json(content.decode("utf-8")))
    except UnicodeDecodeError as error:
        found = content[error.start]
        return JsonLine(
            number,
            None,
            f"is not UTF-8 text: byte {error.start + 1} is 0x{found:02X}; save the file as UTF-8",
        )
    except JsonError as error:
        cut = "" if ended else "; this last line has no line end, so the file may be cut off"
        return JsonLine(number, None, f"is not JSON: {error}{cut}")
