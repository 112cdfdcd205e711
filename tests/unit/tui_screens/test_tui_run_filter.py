"""The filter of the runs table."""

from pathlib import Path

import pytest

from needle_tui.fleet import RunRow
from needle_tui.run_filter import filtered


def row(name: str, phase: str = "finished", loss: float | None = 0.5, device: str = "cpu") -> RunRow:
    """A row with what the filter looks at."""
    return RunRow(Path(name), name, "finetune", phase, False, "", 10, 20, loss, loss, 100.0, device, 0.0, ())


ROWS = (row("tools"), row("tools-big", "failed", 2.0, "cuda"), row("chat", "running", None))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["tools", "tools-big", "chat"]),
        ("tools", ["tools", "tools-big"]),
        ("TOOLS cuda", ["tools-big"]),
        ("state=failed", ["tools-big"]),
        ("loss<1", ["tools"]),
        ("loss>1 device=cuda", ["tools-big"]),
        ("loss>abc", []),
        ("colour=red", []),
    ],
)
def test_every_word_must_hold(text: str, names: list[str]) -> None:
    assert [one.name for one in filtered(ROWS, text)] == names
