"""`needle run` as a person runs it."""

import io
import json
from pathlib import Path

import pytest

from needle.cli import run

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "set_lights",
            "description": "Set the lights of a room",
            "parameters": {
                "type": "object",
                "properties": {"room": {"type": "string"}, "brightness": {"type": "integer", "maximum": 100}},
                "required": ["room"],
            },
        },
    }
]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return "tools.json"


def ask(*flags: str) -> int:
    return run(["run", "--checkpoint", "sample", *flags])


def test_prompt_and_calls_are_shown_and_what_is_not_held_to_is_said(tools, capsys):
    assert ask("--tools", tools, "--query", "set the kitchen lights to 40 percent") == 0
    printed = capsys.readouterr().out
    assert '<tools>[{"name":"set_lights"' in printed
    assert "set the kitchen lights to 40 percent<|im_end|>" in printed
    assert "\ncalls\n  [" in printed
    assert "not held to maximum" in printed


def test_json_is_one_document_and_the_same_every_time(tools, capsys):
    documents = []
    for _ in range(2):
        assert ask("--tools", tools, "--query", "turn on the porch lights", "--json") == 0
        documents.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
    assert documents[0] == documents[1]
    assert documents[0]["weights"] == "4 bits"
    assert documents[0]["ended"]
    assert isinstance(documents[0]["calls"], list)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_however_wild_the_draw_the_answer_keeps_to_the_schemas(tools, capsys, seed):
    flags = ["--temperature", "50", "--seed", seed, "--limit", "60", "--json"]
    assert ask("--tools", tools, "--query", "hello", *flags) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["problems"] == []
    assert {call["name"] for call in document["calls"]} <= {"set_lights"}


def test_without_the_constraint_noise_is_shown_as_it_is_and_fails(tools, capsys):
    flags = ["--temperature", "50", "--no-constrained", "--limit", "30"]
    assert ask("--tools", tools, "--query", "hello", *flags) == 1
    assert "needle: the answer" in capsys.readouterr().err


def test_the_query_can_come_from_standard_input(tools, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("lights on in the den\n"))
    assert ask("--tools", tools, "--query", "-", "--float", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert "\nlights on in the den<|im_end|>" in document["prompt"]
    assert document["weights"] == "float32"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[{", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"3", "not a list"),
        (b'[{"description": "x"}]', "tool 1 has no name"),
        (None, "bad.json"),
    ],
)
def test_tools_that_cannot_be_used_are_refused(tools, tmp_path, capsys, content, said):
    if content is not None:
        (tmp_path / "bad.json").write_bytes(content)
    assert ask("--tools", "bad.json", "--query", "hello") == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert "bad.json" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    "flags",
    [
        ["--query", "  "],
        ["--query", "hello", "--temperature", "-1"],
        ["--query", "hello", "--temperature", "nan"],
        ["--query", "hello", "--limit", "0"],
        ["--query", "hello", "--seed", "-1"],
        ["--query", "long " * 3000],
    ],
)
def test_flags_that_make_no_sense_are_refused(tools, capsys, flags):
    assert ask(*flags) == 2
    assert "Traceback" not in capsys.readouterr().err
