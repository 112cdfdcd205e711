"""A trainer's output as inert text: nothing in it can move a cursor, colour a screen or turn a line round."""

from __future__ import annotations

import re

MAX_LINE_CHARACTERS = 4000

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC with their text
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_NOISE = re.compile(
    r"^[\W_]*$"
    r"|^For simplicity, JAX has removed its internal frames"
    r"|SimplifiedTraceback"
    r"|^Set JAX_TRACEBACK_FILTERING"
    r"|^The (?:stack trace below|above exception was)"
    r"|^During handling of the above exception"
    r"|^=== needle: attempt "
)
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Failure)\b(?::|$)")


def shown_line(raw: bytes, cut_bytes: int = 0) -> str:
    """One line as a terminal would leave it, without what acts. `cut_bytes` were left out at its end.

    A progress bar redrawn with carriage returns is its last state; a long line is cut with a mark.
    """
    text = _last_state(raw).decode("utf-8", "replace")
    text = _CONTROLS.sub("", _SEQUENCES.sub("", _without_backspaces(text)).expandtabs(4))
    left_out = len(text) - MAX_LINE_CHARACTERS
    if left_out > 0 or cut_bytes:
        return f"{text[:MAX_LINE_CHARACTERS]} … {max(0, left_out) + cut_bytes:,} more"
    return text.rstrip()


def last_meaningful_line(raw: bytes) -> str:
    """What a trainer's last words say: its exception, else its last line with words in it; may be empty."""
    lines = [shown_line(line).strip() for line in raw.split(b"\n")]
    spoken = [line for line in lines if line and not _NOISE.search(line)]
    exceptions = [line for line in spoken[-40:] if _EXCEPTION.search(line)]
    return (exceptions or spoken or [""])[-1][:500]


def _last_state(raw: bytes) -> bytes:
    body = raw.rstrip(b"\r")
    return body[body.rfind(b"\r") + 1 :]


def _without_backspaces(text: str) -> str:
    if "\b" not in text:
        return text
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)
