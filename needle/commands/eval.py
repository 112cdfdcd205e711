"""`needle eval`: how often a model calls what it should, as trained and as it ships."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress

from needle.commands.models import LoadedModel, load_model
from needle.commands.printing import print_json, say
from needle.data.examples import Example, ExampleFile, read_examples
from needle.data.jsontext import JsonError, parse_json
from needle.data.locate import SAMPLE
from needle.data.sample import sample_directory
from needle.data.score_table import score_lines
from needle.errors import InputError
from needle.runs.record import write_atomically

if TYPE_CHECKING:
    from needle.train.evaluate import Evaluation, Failure, Form
    from needle.train.evaluate import Progress as Tell

_LISTED = 20


def run(arguments: argparse.Namespace) -> int:
    """Answer every example with each form of the model, and print one table. Returns the exit status."""
    data = _data_path(arguments.data)
    out = _failures_path(arguments, data)
    read = read_examples(data)
    _say_left_out(read)
    model = load_model(arguments)
    examples = _fitting(read, model)
    for warning in model.warnings:
        say(f"warning: {warning}")
    with _progress(len(examples)) as tell:
        from needle.train.evaluate import evaluate

        found = [
            evaluate(form, examples, model.tokenizer, constrained=arguments.constrained, progress=tell)
            for form in _forms(arguments, model)
        ]
    _write_failures(out, [failure for one in found for failure in one.failures])
    _report(arguments, data, model, found, out)
    return 0


def _data_path(data: str) -> Path:
    """The file to answer; `sample` is the part of the embedded data that is never trained on."""
    path = Path(data).expanduser()
    return sample_directory() / "heldout.jsonl" if data == SAMPLE and not path.exists() else path


def _failures_path(arguments: argparse.Namespace, data: Path) -> Path:
    """Known before the work: where the failures go. Raises InputError when something else is there."""
    name = SAMPLE if arguments.data == SAMPLE else data.name.removesuffix(".jsonl")
    out = Path(arguments.failures or f"{name}.failures.jsonl").expanduser()
    if out.is_dir():
        raise InputError("is a directory", where=str(out), remedy="give --failures a file")
    if not out.parent.is_dir():
        raise InputError("its directory does not exist", where=str(out), remedy=f"mkdir -p {out.parent}")
    if out.exists() and not arguments.overwrite and not _is_ours(out):
        raise InputError(
            "already exists and is no list of failures",
            where=str(out),
            remedy="choose another --failures, or --overwrite",
        )
    return out


def _is_ours(out: Path) -> bool:
    """Whether a file is empty or begins as one written here."""
    try:
        with out.open(encoding="utf-8") as file:
            line = file.readline()
        first = parse_json(line) if line.strip() else {"weights": "", "expected": []}
    except (OSError, UnicodeDecodeError, JsonError):
        return False
    return isinstance(first, dict) and {"weights", "expected"} <= first.keys()


def _forms(arguments: argparse.Namespace, model: LoadedModel) -> Iterator[Form]:
    """Made one after the other: a large model is in memory twice, never more often."""
    from needle.train.evaluate import archived_form, float_form, shipped_form

    yield float_form(model.params, model.config, model.execution)
    yield shipped_form(model.params, model.config, model.numerics.bit_map, model.execution)
    if arguments.cact:
        from needle.model.archive_reading import read_archive
        from needle.model.raw_tokenizer import raw_tokenizer, read_raw_tokenizer

        path = Path(arguments.cact).expanduser()
        archive = read_archive(path)
        own = read_raw_tokenizer(raw_tokenizer(model.tokenizer_path, model.config.vocab_size))
        if list(archive.pieces) != own:
            raise InputError(
                f"has another tokenizer than {model.tokenizer_path.name} of {model.name}",
                where=str(path),
                remedy="give the tokenizer.model it was built with, with --tokenizer",
            )
        yield archived_form(path.name, archive.params, archive.config, model.execution)


def _fitting(read: ExampleFile, model: LoadedModel) -> list[Example]:
    """The examples whose prompt the model can read whole; those that are longer are listed."""
    from needle.train.evaluate import prompt_tokens

    most = model.config.max_seq_len
    over = {example.line for example in read.examples if len(prompt_tokens(example, model.tokenizer)) > most}
    if over:
        lines = ", ".join(str(line) for line in sorted(over)[:_LISTED])
        more = ", …" if len(over) > _LISTED else ""
        say(f"{read.path}: left out: prompts over {most} tokens, lines {lines}{more}")
    fitting = [example for example in read.examples if example.line not in over]
    if not fitting:
        raise InputError(f"no example has a prompt of at most {most} tokens", where=read.path)
    return fitting


def _say_left_out(read: ExampleFile) -> None:
    for problem in read.problems[:_LISTED]:
        say(f"{read.path}:{problem.line}: left out: {problem.text}")
    if len(read.problems) > _LISTED:
        say(f"{read.path}: {len(read.problems) - _LISTED} more lines left out")


@contextmanager
def _progress(total: int) -> Iterator[Tell]:
    """A bar for each form in a terminal; nothing elsewhere."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bars:
        tasks: dict[str, object] = {}

        def tell(form: str, done: int) -> None:
            if form not in tasks:
                tasks[form] = bars.add_task(form, total=total)
            bars.update(tasks[form], completed=done)  # type: ignore[arg-type]

        yield tell


def _write_failures(out: Path, failures: Iterable[Failure]) -> None:
    """One JSON object a line, in the order of forms and of the file."""
    lines = (
        json.dumps(
            {
                "line": failure.example.line,
                "weights": failure.form,
                "query": failure.example.query,
                "expected": parse_json(failure.example.answers),
                "said": failure.said.text,
                "problem": failure.said.problem or None,
            },
            ensure_ascii=False,
        )
        for failure in failures
    )
    write_atomically(out, "".join(f"{line}\n" for line in lines).encode())


def _report(
    arguments: argparse.Namespace, data: Path, model: LoadedModel, found: Sequence[Evaluation], out: Path
) -> None:
    if arguments.json:
        document = {
            "data": str(data),
            "checkpoint": model.name,
            "adapter": arguments.lora,
            "archive": arguments.cact,
            "constrained": arguments.constrained,
            "bits_map": str(model.numerics.bit_map),
            "scores": {one.form: one.scores.facts() for one in found},
            "failures": str(out),
        }
        print_json(document)
        return
    print("\n".join(score_lines([(one.form, one.scores) for one in found])))
    print(f"bits       {model.numerics.bit_map.words} — {model.numerics.reason}")
    if arguments.constrained:
        print("answers    held to the tools that each example declares")
    print(f"failures   {out} — {sum(len(one.failures) for one in found)}")
