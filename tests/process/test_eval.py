"""`needle eval` as a person runs it, and the scores at the end of a run."""

import json
import shutil
from pathlib import Path

import pytest

from needle.cli import run
from needle.data.sample import sample_directory
from tests.process.finetune_kit import events, log, make_run, the_end, train


@pytest.fixture
def some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few held-out examples of the sample, in the directory a person works in."""
    monkeypatch.chdir(tmp_path)
    lines = (sample_directory() / "heldout.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "some.jsonl").write_text("".join(lines[:12]), encoding="utf-8")
    return tmp_path / "some.jsonl"


def test_both_forms_and_the_archive_are_scored_in_one_table(some, tmp_path, capsys):
    assert run(["build", "sample", "--out", "model.cact"]) == 0
    capsys.readouterr()
    assert run(["eval", "some.jsonl", "--checkpoint", "sample", "--cact", "model.cact", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed["scores"]) == ["float32", "4 bits", "model.cact"]
    # What is rounded here and what was rounded into the archive is the same model.
    assert printed["scores"]["4 bits"] == printed["scores"]["model.cact"]
    for scores in printed["scores"].values():
        assert scores["examples"] == 12
        assert scores["on_topic"] + scores["off_topic"] == 12
    failures = [json.loads(line) for line in Path("some.failures.jsonl").read_text().splitlines()]
    wrong = {form: 12 - scores["exact"] for form, scores in printed["scores"].items()}
    assert {form: [one["weights"] for one in failures].count(form) for form in wrong} == wrong
    assert all(1 <= one["line"] <= 12 and "expected" in one and "said" in one for one in failures)


def test_the_table_is_for_people_and_a_second_run_may_replace_its_failures(some, capsys):
    for flags in ([], ["--constrained"]):
        assert run(["eval", "some.jsonl", "--checkpoint", "sample", *flags]) == 0
        printed = capsys.readouterr()
        assert "float32" in printed.out
        assert "some.failures.jsonl" in printed.out
        assert ("held to the tools" in printed.out) == bool(flags)
        assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["missing.jsonl"], "missing.jsonl"),
        (["some.jsonl", "--failures", "notes.txt"], "already exists and is no list of failures"),
        (["some.jsonl", "--failures", "no/where.jsonl"], "mkdir -p no"),
        (["some.jsonl", "--checkpoint", "some.jsonl"], "some.jsonl"),
        (["some.jsonl", "--cact", "some.jsonl"], "some.jsonl"),
    ],
)
def test_what_cannot_be_scored_is_refused_and_nothing_is_lost(some, tmp_path, capsys, flags, said):
    (tmp_path / "notes.txt").write_text("mine\n")
    flags = flags if "--checkpoint" in flags else [*flags, "--checkpoint", "sample"]
    assert run(["eval", *flags]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err
    assert (tmp_path / "notes.txt").read_text() == "mine\n"


def test_an_archive_with_another_tokenizer_is_refused(some, golden, capsys):
    command = ["eval", "some.jsonl", "--checkpoint", "sample", "--cact", str(golden / "tuned_w4.cact")]
    assert run(command) == 2
    assert "another tokenizer" in capsys.readouterr().err


def test_a_run_ends_with_the_scores_of_both_models_in_both_forms(tmp_path):
    directory = make_run(tmp_path, epochs=1, eval=True)
    assert train(directory) == 0, log(directory)
    assert [event["phase"] for event in events(directory, "phase")] == ["compiling", "running", "scoring"]
    told = [(event["model"], event["weights"]) for event in events(directory, "scores")]
    assert told == [("base", "float32"), ("base", "4 bits"), ("tuned", "float32"), ("tuned", "4 bits")]
    assert {event["examples"] for event in events(directory, "scores")} == {6}
    assert the_end(directory)["outcome"] == "finished"


def test_a_run_without_eval_tells_no_scores(tmp_path):
    directory = make_run(tmp_path, epochs=1, eval=False)
    assert train(directory) == 0, log(directory)
    assert not events(directory, "scores")


def test_scores_can_be_had_from_a_copy_of_a_base_elsewhere(some, tmp_path, capsys):
    for name in ("base.safetensors", "tokenizer.model"):
        shutil.copy(sample_directory() / name, tmp_path / name)
    assert run(["eval", "some.jsonl", "--checkpoint", "base.safetensors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint"] == "base.safetensors"
