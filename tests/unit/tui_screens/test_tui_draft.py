"""What the form's values come to."""

from needle.config import FinetuneSettings, to_json
from needle_tui.draft import judge
from needle_tui.form_layout import as_text


def values(**changed: str) -> dict[str, str]:
    """The defaults as the form holds them, with changes."""
    return {**{name: as_text(value) for name, value in to_json(FinetuneSettings()).items()}, **changed}


def test_every_bad_value_is_marked_at_once() -> None:
    outcome = judge(values(epochs="0", lr="fast"), None, None, {})
    assert outcome.problems["epochs"] == "must be at least 1, not 0"
    assert outcome.problems["lr"] == "must be a number, not 'fast'"
    assert not outcome.can_start


def test_what_is_missing_names_the_settings() -> None:
    assert judge(values(batch_size=""), None, None, {}).missing == "1 setting needs a change: batch size"


def test_nothing_starts_before_the_files_were_looked_at() -> None:
    outcome = judge(values(), None, None, {})
    assert not outcome.can_start
    assert outcome.missing == "looking at the files…"
