"""One definition of a setting serves flags, forms, checks and records."""

import pytest

from needle.cli import build_parser
from needle.commands.arguments import given_settings
from needle.config import (
    TASKS,
    FinetuneSettings,
    build,
    check,
    fields_of,
    from_json,
    to_arguments,
    to_json,
    value_text,
)
from needle.errors import InputError

EVERY_FIELD = [(task, field) for task in TASKS.values() for field in fields_of(task)]


@pytest.mark.parametrize(("task", "field"), EVERY_FIELD, ids=lambda value: getattr(value, "name", ""))
def test_every_setting_has_help_and_a_sound_default(task, field):
    assert len(field.setting.help) > 10
    assert check(task, {field.name: field.default}) == {}


def test_the_defaults_are_those_the_project_promises():
    settings = FinetuneSettings()
    assert (settings.epochs, settings.batch_size, settings.lr) == (3, 16, 1e-4)
    assert (settings.lora_rank, settings.lora_alpha, settings.max_len) == (16, 32, 1024)
    assert (settings.val_split, settings.seed) == (0.1, 0)


def test_settings_survive_json():
    settings = FinetuneSettings(data="d.jsonl", epochs=7, lr=3e-4, overwrite=True)
    assert from_json("finetune", to_json(settings)) == settings


def test_settings_survive_a_command_line():
    settings = FinetuneSettings(data="my data.jsonl", epochs=7, lr=3e-4, overwrite=True, attention="manual")
    program, *arguments = to_arguments("finetune", settings)
    parsed = build_parser().parse_all(arguments)
    assert program == "needle"
    assert build(FinetuneSettings, given_settings(parsed, FinetuneSettings)) == settings


def test_names_of_a_list_are_put_in_order_and_unknown_ones_told():
    settings = build(FinetuneSettings, {"lora_targets": " v, q ,v"})
    assert settings.lora_targets == "q,v"
    assert build(FinetuneSettings, {"lora_targets": "v,q,out,k,gate"}) == FinetuneSettings()
    problem = check(FinetuneSettings, {"lora_targets": "q,mlp"})["lora_targets"]
    assert problem == "must name some of gate,k,out,q,v, not 'mlp'"
    assert "must name some of" in check(FinetuneSettings, {"lora_targets": " , "})["lora_targets"]


def test_all_problems_are_told_at_once_by_field():
    problems = check(FinetuneSettings, {"epochs": "0", "lr": "fast", "val_split": 1, "attention": "flash"})
    assert set(problems) == {"epochs", "lr", "val_split", "attention"}
    assert problems["epochs"] == "must be at least 1, not 0"
    assert "number" in problems["lr"]
    assert "xla" in problems["attention"]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_a_number_must_be_finite(text):
    assert "finite" in check(FinetuneSettings, {"lr": text})["lr"]


@pytest.mark.parametrize(("text", "value"), [("1_000", 1000), (" 12 ", 12), ("3.0", None), ("", None)])
def test_whole_numbers_as_people_type_them(text, value):
    problems = check(FinetuneSettings, {"epochs": text})
    assert (problems == {}) is (value is not None)
    if value is not None:
        assert build(FinetuneSettings, {"epochs": text}).epochs == value


def test_a_misspelled_setting_is_answered_with_the_near_one():
    with pytest.raises(InputError, match="did you mean batch_size"):
        build(FinetuneSettings, {"batchsize": 3})


def test_a_misspelled_flag_is_answered_with_the_near_one():
    with pytest.raises(InputError) as caught:
        build_parser().parse_all(["finetune", "d.jsonl", "--epoch-count", "3", "--bach-size", "3"])
    assert "--epochs" in str(caught.value) or "--batch-size" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-4, "1e-4"), (0.1, "0.1"), (16, "16"), (32.0, "32"), (3e-3, "3e-3"), (2.5e-4, "2.5e-4")],
)
def test_values_read_as_people_type_them(value, text):
    assert value_text(value) == text
