"""Following files that grow, are cut, replaced, or missing."""

import os
from pathlib import Path

import pytest

from needle.runs.cursor import LONGEST_LINE_BYTES, FileCursor, LineCursor


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def add(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def test_a_missing_file_has_no_lines_until_it_appears(path: Path) -> None:
    cursor = LineCursor(path)
    assert cursor.read().block == b""
    add(path, b"a\n")
    assert cursor.read().block == b"a\n"


def test_a_half_written_line_is_kept_back_until_its_end_arrives(path: Path) -> None:
    cursor = LineCursor(path)
    add(path, b"one\ntw")
    assert cursor.read().block == b"one\n"
    assert cursor.read().block == b""
    add(path, b"o")
    assert cursor.read().block == b""
    add(path, b"!\nthree\n")
    assert cursor.read().block == b"two!\nthree\n"


@pytest.mark.parametrize("slice_bytes", [1, 2, 3, 7, 1000])
def test_slices_of_any_size_give_the_same_lines(path: Path, slice_bytes: int) -> None:
    content = b"first\n\nthird line\n" * 3
    add(path, content + b"rest")
    cursor = LineCursor(path)
    blocks = [cursor.read(slice_bytes)]
    while blocks[-1].more:
        blocks.append(cursor.read(slice_bytes))
    assert b"".join(lines.block for lines in blocks) == content
    assert all(lines.block.endswith(b"\n") for lines in blocks if lines.block)


def test_an_unchanged_file_is_not_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(path, b"a\n")
    cursor = FileCursor(path)
    cursor.read()
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("opened an unchanged file"))
    assert cursor.read().data == b""


def test_a_cut_file_is_read_from_its_beginning(path: Path) -> None:
    add(path, b"one\ntwo\nthree\n")
    cursor = LineCursor(path)
    cursor.read()
    path.write_bytes(b"new\n")
    lines = cursor.read()
    assert (lines.block, lines.restarted) == (b"new\n", True)


def test_a_file_cut_and_grown_past_our_place_between_two_reads_is_noticed(path: Path) -> None:
    add(path, b"one\ntwo\n")
    cursor = LineCursor(path)
    cursor.read()
    path.write_bytes(b"other content, longer than before\n")
    lines = cursor.read()
    assert (lines.block, lines.restarted) == (b"other content, longer than before\n", True)


def test_a_file_cut_and_grown_to_the_very_same_size_is_noticed(path: Path) -> None:
    add(path, b"one\ntwo\n")
    cursor = LineCursor(path)
    cursor.read()
    path.write_bytes(b"uno\ndos\n")
    os.utime(path, ns=(1, 1))
    assert cursor.read().block == b"uno\ndos\n"


def test_a_replaced_file_is_read_from_its_beginning(path: Path) -> None:
    add(path, b"one\nhalf")
    cursor = LineCursor(path)
    cursor.read()
    other = path.with_name("other")
    other.write_bytes(b"one\nhalf of another\n")
    os.replace(other, path)
    lines = cursor.read()
    assert (lines.block, lines.restarted) == (b"one\nhalf of another\n", True)


def test_an_endless_line_is_dropped_once_and_the_next_line_is_whole(path: Path) -> None:
    cursor = LineCursor(path)
    add(path, b"one\n" + b"x" * (3 * LONGEST_LINE_BYTES))
    blocks = [cursor.read()]
    while blocks[-1].more:
        blocks.append(cursor.read())
    add(path, b"x\ntwo\n")
    blocks.append(cursor.read())
    assert b"".join(lines.block for lines in blocks) == b"one\ntwo\n"
    assert sum(lines.dropped for lines in blocks) == 1


@pytest.mark.parametrize(
    ("last_bytes", "expected"), [(0, b""), (3, b""), (4, b"two\n"), (5, b"two\n"), (99, b"one\ntwo\n")]
)
def test_reading_can_begin_near_the_end_at_a_whole_line(path: Path, last_bytes: int, expected: bytes) -> None:
    add(path, b"one\ntwo\n")
    cursor = LineCursor(path, last_bytes=last_bytes)
    assert cursor.read().block == expected
    add(path, b"three\n")
    assert cursor.read().block == b"three\n"


def test_a_directory_in_place_of_the_file_has_no_lines(path: Path) -> None:
    path.mkdir()
    assert LineCursor(path).read().block == b""
