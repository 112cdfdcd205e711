"""The end of a log, shown inert."""

import os
import time
from pathlib import Path

import pytest

from needle.runs.tail import LogTail
from needle.runs.text import MAX_LINE_CHARACTERS, last_meaningful_line, shown_line


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


def add(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"plain", "plain"),
        (b"\x1b[31mred\x1b[0m and \x1b[1;38;5;200mmore\x1b[m", "red and more"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ after", "link after"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]0;a title without end", "0;a title without end"),
        (b"\x1bPdevice\x1b\\text", "text"),
        (b"\x1b[2K\x1b[1A\x1b[?25lup", "up"),
        (b"bell\x07 null\x00 del\x7f", "bell null del"),
        ("c1 \x9b31mred \x85next".encode(), "c1 red next"),
        ("turned \u202ednuora\u202c".encode(), "turned dnuora"),
        (b"caf\xc3\xa9 \xff\xfe bad", "café \ufffd\ufffd bad"),
        (b"a\tb", "a   b"),
        (b"trailing   ", "trailing"),
        (b"windows\r", "windows"),
        (b" 10%\r 50%\r100%", "100%"),
        (b" 10%\r 50%\r100%\r", "100%"),
        (b"\r\x1b[K 7/9", " 7/9"),
        (b"abc\b\b\bxyz", "xyz"),
        (b"\b\bx", "x"),
        (b"[bold]markup[/bold]", "[bold]markup[/bold]"),
    ],
)
def test_a_line_is_what_a_terminal_would_leave_without_what_acts(raw: bytes, shown: str) -> None:
    assert shown_line(raw) == shown


def test_a_long_line_is_cut_with_a_mark_of_how_much() -> None:
    shown = shown_line(b"x" * 5000)
    assert shown.startswith("x" * MAX_LINE_CHARACTERS)
    assert shown.endswith("1,000 more")


def test_no_log_has_no_lines_until_it_appears(path: Path) -> None:
    tail = LogTail(path)
    assert (tail.poll(), tail.lines) == (False, [])
    add(path, b"first\n")
    assert (tail.poll(), tail.lines) == (True, ["first"])
    assert not tail.poll()


def test_the_last_lines_of_a_long_log_and_then_what_is_added(path: Path) -> None:
    add(path, b"".join(b"line %d\n" % number for number in range(50_000)))
    tail = LogTail(path, keep=3)
    tail.poll()
    assert tail.lines == ["line 49997", "line 49998", "line 49999"]
    add(path, b"more\n")
    assert tail.poll()
    assert tail.lines == ["line 49998", "line 49999", "more"]


def test_the_end_of_a_gigabyte_is_there_at_once(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 30)
        file.seek(1 << 30)
        file.write(b"\n" + b"".join(b"line %d\n" % number for number in range(3000)))
    began = time.perf_counter()
    tail = LogTail(path, keep=2000)
    tail.poll()
    assert time.perf_counter() - began < 1.0
    assert (tail.lines[0], tail.lines[-1], len(tail.lines)) == ("line 1000", "line 2999", 2000)


def test_a_log_that_ran_far_ahead_is_taken_up_at_its_end(path: Path) -> None:
    add(path, b"early\n")
    tail = LogTail(path, keep=2)
    tail.poll()
    before = tail.generation
    add(path, b"filler line\n" * 1_000_000 + b"late\n")
    tail.poll()
    assert tail.lines == ["filler line", "late"]
    assert tail.generation != before


def test_a_progress_bar_is_one_line_in_its_last_state(path: Path) -> None:
    add(path, b"start\n")
    tail = LogTail(path)
    for percent in range(0, 101, 10):
        add(path, b"\r%3d%%" % percent)
        tail.poll()
        assert tail.lines == ["start", f"{percent:3d}%"]
    add(path, b"\ndone\n")
    tail.poll()
    assert tail.lines == ["start", "100%", "done"]


def test_a_progress_bar_of_hours_takes_no_memory(path: Path) -> None:
    tail = LogTail(path)
    tail.poll()
    for _ in range(20):
        add(path, b"\r 50% some text" * 20_000)
        tail.poll()
    assert tail.lines == [" 50% some text"]
    assert len(tail._pending) < 100


def test_a_megabyte_line_is_cut_and_the_next_line_is_whole(path: Path) -> None:
    tail = LogTail(path)
    tail.poll()
    for _ in range(3):
        add(path, b"x" * (1 << 20))
        tail.poll()
    assert len(tail.lines[0]) < MAX_LINE_CHARACTERS + 50
    add(path, b"\nnext\n")
    tail.poll()
    assert tail.lines[0].startswith("xxxx")
    assert tail.lines[0].endswith(f"{3 * (1 << 20) - MAX_LINE_CHARACTERS:,} more")
    assert tail.lines[1] == "next"


@pytest.mark.parametrize("replaced", [True, False])
def test_a_cut_or_replaced_log_shows_the_new_one(path: Path, replaced: bool) -> None:
    add(path, b"one\ntwo\nthree\n")
    tail = LogTail(path)
    tail.poll()
    before = tail.generation
    if replaced:
        other = path.with_name("other")
        other.write_bytes(b"new\n")
        os.replace(other, path)
    else:
        path.write_bytes(b"new\n")
    assert tail.poll()
    assert (tail.lines, tail.generation != before) == (["new"], True)


def test_complete_lines_are_counted(path: Path) -> None:
    path.touch()
    tail = LogTail(path, keep=2)
    tail.poll()
    add(path, b"a\nb\nc\nd")
    tail.poll()
    assert (tail.appended, tail.lines) == (3, ["c", "d"])


JAX_TRACEBACK = b"""Traceback (most recent call last):
  File "train.py", line 3, in <module>
    step()
jax.errors.SimplifiedTraceback: For simplicity, JAX has removed its internal frames from the traceback.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "train.py", line 3, in <module>
    step()
jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes.
--------------------
For simplicity, JAX has removed its internal frames from the traceback of the following exception.
"""


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (b"", ""),
        (b"\n\n----\n", ""),
        (b"loading\nno such file: x\n\n", "no such file: x"),
        (b"Traceback (most recent call last):\n  File x\nKeyError: 'tokens'\n", "KeyError: 'tokens'"),
        (b"ValueError: bad\nexiting\n", "ValueError: bad"),
        (JAX_TRACEBACK, "RESOURCE_EXHAUSTED"),
        (b"\x1b[31mmy.pkg.CustomError\x1b[0m: no\r\n", "my.pkg.CustomError: no"),
        (b"50%\r100%\r\nF0101 Unknown flag in XLA_FLAGS: --x\n", "F0101 Unknown flag in XLA_FLAGS: --x"),
    ],
)
def test_the_last_words_are_the_exception_or_the_last_words(log: bytes, said: str) -> None:
    assert said in last_meaningful_line(log)
    assert bool(last_meaningful_line(log)) == bool(said)
