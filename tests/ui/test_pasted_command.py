"""Pasting a command line into Launch, and the words for what cannot be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from textual import events

from needle.config import FinetuneSettings, build, to_arguments
from needle.errors import InputError
from needle.launch.sample import sample_settings
from needle_tui.app import NeedleApp
from needle_tui.pasted import looks_like_a_command, settings_of_command
from needle_tui.widgets.form_field import ValueInput
from needle_tui.widgets.help_line import HelpLine
from needle_tui.widgets.launch_board import LaunchBoard
from tests.ui.reading import Until

COMMAND = """$ JAX_PLATFORMS=cpu needle finetune my.jsonl --epochs 7 \\
   --lr 3e-4 --overwrite --name 'two words'
"""


def test_a_prompt_variables_and_continued_lines_are_understood() -> None:
    task, values = settings_of_command(COMMAND)
    assert task == "finetune"
    assert (values["data"], values["epochs"], values["lr"]) == ("my.jsonl", "7", "3e-4")
    assert (values["overwrite"], values["name"], values["batch_size"]) == (True, "two words", 16)


@pytest.mark.parametrize(
    "program", ["needle", ".venv/bin/needle", "uv run needle", "python3.11 -P -m needle.cli", "> needle"]
)
def test_the_program_is_recognised_however_it_is_called(program: str) -> None:
    assert settings_of_command(f"{program} finetune a.jsonl").values["data"] == "a.jsonl"


def test_the_sample_flag_brings_the_settings_of_the_sample() -> None:
    values = settings_of_command("needle finetune --sample --epochs 1").values
    assert (values["epochs"], values["lr"]) == ("1", sample_settings().lr)


def test_the_line_that_the_form_shows_is_read_back_as_the_same_settings() -> None:
    settings = FinetuneSettings(data="odd name.jsonl", epochs=2, overwrite=True, out="a b.pkl", lr=3e-5)
    values = settings_of_command(shlex.join(to_arguments("finetune", settings))).values
    assert build(FinetuneSettings, values) == settings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("needle runs list", "starts no training"),
        ("needle finetune --epoks 3", "did you mean --epochs"),
        ("needle finetune 'half", "cut short"),
        ("needle finetune --help", "asks for help"),
    ],
)
def test_what_cannot_be_pasted_is_said_in_words(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        settings_of_command(text)


@pytest.mark.parametrize("text", ["needles.jsonl", "/data/needle/file", "my needle finetune", ""])
def test_other_text_is_left_to_the_field(text: str) -> None:
    assert not looks_like_a_command(text)


@pytest.mark.parametrize("focused", [True, False])
async def test_a_pasted_command_fills_the_form(
    cockpit: Callable[..., NeedleApp], until: Until, focused: bool
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        form = app.screen.query_one(LaunchBoard).form
        if focused:
            form.field_widget("data").query_one(ValueInput).focus()
            await pilot.pause()
        app.post_message(events.Paste(COMMAND))
        await until(pilot, lambda: form.values["epochs"] == "7", "the pasted value")
        assert (form.values["data"], form.values["overwrite"], form.values["lora_rank"]) == (
            "my.jsonl",
            "yes",
            "16",
        )


async def test_a_pasted_path_goes_into_the_field(cockpit: Callable[..., NeedleApp], until: Until) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        form = app.screen.query_one(LaunchBoard).form
        box = form.field_widget("tokenizer").query_one(ValueInput)
        form.show_advanced(True)
        box.focus()
        await pilot.pause()
        app.post_message(events.Paste("/data/needle/tokenizer.model"))
        await until(pilot, lambda: form.values["tokenizer"] == "/data/needle/tokenizer.model", "the path")


async def test_a_command_that_is_no_run_is_refused_in_words(
    cockpit: Callable[..., NeedleApp], until: Until
) -> None:
    app = cockpit()
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.screen.query(LaunchBoard), "the form")
        app.post_message(events.Paste("needle runs list"))
        line = app.screen.query_one(HelpLine)
        await until(pilot, lambda: "starts no training" in line.text, "the words")
