"""The panes' lines: words beside every glyph, widths that hold, numbers that fit."""

import pytest
from rich.cells import cell_len

from needle.runs.record import Decision, MemoryBill, MemoryPart, Variable
from needle_tui.phases import LOOKS, look_of
from needle_tui.theme import ANSI, DARK, LIGHT, theme_for
from needle_tui.widgets.decision_list import DecisionList
from needle_tui.widgets.environment_list import CommandLine, EnvironmentList
from needle_tui.widgets.lines import Lines
from needle_tui.widgets.memory_bar import memory_bar, of_text
from needle_tui.widgets.memory_bill import MemoryPanel
from needle_tui.widgets.numbers_panel import split_lines

GIB = 1 << 30


def plain(pane: Lines, width: int) -> str:
    """A pane's lines as text; each within the width."""
    lines = [line.plain for line in pane.lines(width)]
    assert all(cell_len(line) <= width for line in lines), lines
    return "\n".join(lines)


def test_every_phase_has_a_word_and_a_glyph_of_its_own_colour_role() -> None:
    assert all(look.word and len(look.ascii) == 1 for look in LOOKS.values())
    assert look_of("running", stalled=True).word == "stalled"
    assert look_of("from the future").word == "from the future"


@pytest.mark.parametrize("width", [24, 40, 60])
def test_a_bill_that_does_not_fit_says_by_how_much(width: int) -> None:
    panel = MemoryPanel()
    panel.show(MemoryBill("cuda:0", (MemoryPart("weights", 9 * GIB),), 8 * GIB, GIB))
    assert "does not fit" in plain(panel, width)
    assert "2.0 GiB" in plain(panel, 60)


def test_a_bill_without_a_known_limit_gives_no_verdict() -> None:
    panel = MemoryPanel()
    panel.show(MemoryBill("tpu:0", (MemoryPart("weights", GIB),), 0))
    text = plain(panel, 60)
    assert "fits" not in text
    assert "needs about 1.0 GiB" in text


@pytest.mark.parametrize(("used", "added"), [(0, 0), (0.001, 0.001), (0.5, 0.2), (0.9, 3), (2, 0)])
def test_a_memory_bar_keeps_its_width(used: float, added: float) -> None:
    assert memory_bar(20, used, added).cell_length == 20


def test_amounts_share_the_unit_of_the_whole() -> None:
    assert of_text(512 << 20, 139 * GIB) == "0.5/139 GiB"


def test_a_decision_shows_its_reason_on_the_same_line_or_below() -> None:
    pane = DecisionList("Plan", id="plan")
    decisions = (
        ("Backend", Decision("cuda", "probed: two devices, an operation and its gradient were right")),
    )
    pane.show(decisions, dense=False)
    assert plain(pane, 40).splitlines()[0] == "  Backend    cuda"
    assert " ".join(plain(pane, 40).split()).endswith("an operation and its gradient were right")
    pane.show(decisions, dense=True)
    assert len(plain(pane, 40).splitlines()) == 1


def test_a_variable_of_the_persons_own_is_shown_as_kept() -> None:
    pane = EnvironmentList()
    kept = Variable("XLA_FLAGS", "--x", "yours, kept: set before needle started", kept=True)
    removed = Variable("JAX_PLATFORM_NAME", None, "deprecated; JAX_PLATFORMS says it")
    pane.show((kept, removed), dense=False)
    text = plain(pane, 70)
    assert "XLA_FLAGS=--x  yours, kept: set before needle started" in text
    assert "unset JAX_PLATFORM_NAME" in text


def test_the_command_line_can_be_pasted_into_a_shell() -> None:
    pane = CommandLine()
    pane.show(("needle", "finetune", "my data.jsonl"))
    assert plain(pane, 70) == "  $ needle finetune 'my data.jsonl'"


def test_the_parts_of_a_step_fill_one_bar() -> None:
    bar, words = split_lines((("data", 10.0), ("transfer", 0.0), ("compute", 30.0)), 42)
    assert bar.cell_length == 42
    assert words.plain == "  data 25%  transfer 0%  compute 75%"


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm-256color"}, DARK),
        ({"TERM": "xterm", "COLORTERM": "truecolor", "COLORFGBG": "0;15"}, LIGHT),
        ({"TERM": "linux"}, ANSI),
        ({"TERM": "xterm"}, ANSI),
        ({"TERM": "linux", "NEEDLE_THEME": "light"}, LIGHT),
    ],
)
def test_the_theme_follows_the_terminal(environment: dict[str, str], theme: object) -> None:
    assert theme_for(environment) is theme
