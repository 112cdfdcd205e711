"""Whatever lies between good lines, and however a file is sliced, the good lines are read."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from needle.runs.cursor import LineCursor
from needle.runs.events import parse_events
from needle.runs.metric_lines import MetricDecoder
from needle.runs.metrics import MetricTable
from needle.runs.text import MAX_LINE_CHARACTERS, last_meaningful_line, shown_line

# No newline, and nothing that would make the next line's beginning part of a string.
GARBAGE = st.binary(max_size=60).map(lambda data: data.replace(b"\n", b""))
BROKEN = st.sampled_from(
    [b'{"step":', b'{"step":1,"loss":', b"[", b"{}", b"]", b",", b'"', b'{"step":"1', b"\x00"]
)


@settings(max_examples=150, deadline=None)
@given(between=st.lists(st.one_of(GARBAGE, BROKEN), max_size=12), slice_bytes=st.integers(1, 400))
def test_good_lines_survive_any_garbage_between_them(between: list[bytes], slice_bytes: int) -> None:
    decoder, table = MetricDecoder(), MetricTable()
    lines = [b'{"step":0,"loss":0.5}']
    for step, garbage in enumerate(between, start=1):
        lines += [garbage, b'{"step":%d,"loss":%d.5}' % (step, step)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines) + b'{"step":999')
        cursor, more = LineCursor(path), True
        while more:
            read = cursor.read(slice_bytes)
            table.append(decoder.decode(read.block) if read.block else decoder.decode(b""))
            more = read.more
    found = table.series("loss").values.tolist()
    assert [value for value in found if value in {step + 0.5 for step in range(len(between) + 1)}] == [
        step + 0.5 for step in range(len(between) + 1)
    ]
    assert decoder.garbage_lines <= sum(1 for garbage in between if garbage.strip())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_make_events_or_text_fail_or_act(data: bytes) -> None:
    parse_events(data + b"\n")
    last_meaningful_line(data)
    shown = shown_line(data)
    assert all(
        character.isprintable() or character == "\u3000" or not character.isascii() for character in shown
    )
    assert "\x1b" not in shown
    assert len(shown) <= MAX_LINE_CHARACTERS + 40
