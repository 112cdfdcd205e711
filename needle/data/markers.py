"""The markup of a Needle conversation: pieces 4..13 of its tokenizer, in this order."""

from __future__ import annotations

import re

TURN_START, TURN_END = "<|im_start|>", "<|im_end|>"
THINK_START, THINK_END = "<think>", "</think>"
TOOLS_START, TOOLS_END = "<tools>", "</tools>"
CALL_START, CALL_END = "<tool_call>", "</tool_call>"
RESULT_START, RESULT_END = "<tool_result>", "</tool_result>"

MARKERS = (
    TURN_START, TURN_END, THINK_START, THINK_END, TOOLS_START,
    TOOLS_END, CALL_START, CALL_END, RESULT_START, RESULT_END,
)  # fmt: skip

MARKER_SYMBOLS = {marker: 256 + number for number, marker in enumerate(MARKERS)}
"""What markers count as where text is taken apart into symbols: a symbol each, beside the bytes 0..255."""

PAD_ID, EOS_ID, BOS_ID, UNKNOWN_ID = 0, 1, 2, 3
FIRST_MARKER_ID = 4
TURN_END_ID = FIRST_MARKER_ID + MARKERS.index(TURN_END)

_ANY_MARKER = re.compile("|".join(re.escape(marker) for marker in MARKERS))


def marker_in(text: str) -> str:
    """The first marker that `text` holds, empty when there is none."""
    found = _ANY_MARKER.search(text)
    return found.group() if found else ""
