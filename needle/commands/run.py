"""`needle run`: one question to a model, with what it is shown, what it thinks and what it calls."""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from needle.commands.models import LoadedModel, load_model
from needle.commands.printing import print_json, say
from needle.data.calls import Said, parse_said
from needle.data.examples import Example, read_examples, render
from needle.data.files import open_input, unreadable
from needle.data.grammar import not_covered
from needle.data.jsontext import Json, JsonError, canonical_json, parse_json
from needle.data.lines import LineError
from needle.data.locate import SAMPLE
from needle.data.markers import CALL_END, CALL_START, THINK_END, THINK_START, TURN_END
from needle.data.parsing import parse_example
from needle.data.sample import sample_directory
from needle.data.schemas import call_problem
from needle.errors import InputError

if TYPE_CHECKING:
    from needle.train.evaluate import Form

_WANTED = "a JSON list of tools, each an object with a name and parameters"


@dataclass(frozen=True)
class Answer:
    """What was said, of how many tokens, in how many seconds, and whether it came to its end."""

    said: Said
    tokens: int
    seconds: float
    ended: bool


def run(arguments: argparse.Namespace) -> int:
    """Ask once. Returns 0 when the answer can be read and keeps to the schemas, else 1."""
    _check(arguments)
    example = _question(arguments)
    constrained = bool(arguments.tools) if arguments.constrained is None else arguments.constrained
    model = load_model(arguments)
    for warning in model.warnings:
        say(f"warning: {warning}")
    form = _form(arguments, model)
    uncovered = not_covered(example.tools) if constrained else []
    if not arguments.json:
        print(f"weights    {form.name}\nprompt\n{_indented(render(example)[0])}")
    answer = _ask(arguments, model, form, example, constrained)
    problems = _problems(example, answer)
    if arguments.json:
        _print_document(form, example, answer, problems, uncovered)
    else:
        _print_end(answer, problems, uncovered)
    return 1 if problems else 0


def _check(arguments: argparse.Namespace) -> None:
    if not (math.isfinite(arguments.temperature) and arguments.temperature >= 0):
        raise InputError(f"--temperature {arguments.temperature} is not 0 or more")
    if arguments.limit < 1:
        raise InputError(f"--limit {arguments.limit} leaves no token to say")
    if arguments.seed < 0:
        raise InputError(f"--seed {arguments.seed} is not 0 or more")


def _question(arguments: argparse.Namespace) -> Example:
    """The query as an example without answers, which is checked and rendered as those of a file are."""
    query = sys.stdin.read().strip() if arguments.query == "-" else arguments.query
    tools = _tools(arguments.tools) if arguments.tools else []
    try:
        row: Json = {"query": query, "tools": tools, "system": arguments.system, "answers": []}
        return parse_example(row, 1).example
    except LineError as error:
        where = str(arguments.tools or "") if "tool" in str(error) else ""
        raise InputError(str(error), where=where, remedy=f"give {_WANTED}" if where else "") from None


def _tools(path: str) -> Json:
    if path == SAMPLE and not Path(path).exists():
        return _sample_tools()
    with open_input(Path(path).expanduser(), _WANTED) as file:
        try:
            text = file.read().decode("utf-8-sig")
        except OSError as error:
            raise unreadable(path, error) from None
        except UnicodeDecodeError as error:
            raise InputError(f"is not UTF-8 text (byte {error.start})", where=path) from None
    try:
        found = parse_json(text)
    except JsonError as error:
        raise InputError(f"is not JSON: {error}", where=path, remedy=f"give {_WANTED}") from None
    if isinstance(found, dict) and isinstance(found.get("tools"), list):
        return found["tools"]  # a request or an example: its tools are meant
    return [found] if isinstance(found, dict) else found


def _sample_tools() -> Json:
    """Every tool of the embedded sample, once."""
    tools: dict[str, Json] = {}
    for example in read_examples(sample_directory() / "train.jsonl").examples:
        declared = parse_json(example.tools)
        for tool in declared if isinstance(declared, list) else []:
            tools[canonical_json(tool)] = tool
    return list(tools.values())


def _form(arguments: argparse.Namespace, model: LoadedModel) -> Form:
    from needle.train.evaluate import float_form, shipped_form

    if arguments.float:
        return float_form(model.params, model.config, model.execution)
    return shipped_form(model.params, model.config, model.numerics.bit_map, model.execution)


def _ask(
    arguments: argparse.Namespace, model: LoadedModel, form: Form, example: Example, constrained: bool
) -> Answer:
    from needle.model.decode import STOPS
    from needle.model.picking import Sampler, held_to
    from needle.train.evaluate import prompt_tokens

    prompt = prompt_tokens(example, model.tokenizer)
    most = model.config.max_seq_len
    if len(prompt) > most:
        raise InputError(
            f"the prompt has {len(prompt)} tokens; {model.name} reads {most}", remedy="offer fewer tools"
        )
    sampler = Sampler(arguments.temperature, arguments.seed)
    pick = held_to([example.tools], model.tokenizer, arguments.limit, sampler) if constrained else sampler
    began = time.monotonic()
    tokens: list[int] = []
    show = _Shown(model)
    for (token,) in form.generator.steps([prompt], arguments.limit, pick):
        tokens.append(token)
        if not arguments.json:
            show.add(token)
    ended = tokens[-1] in STOPS
    said = parse_said(model.tokenizer.decode(tokens[:-1] if ended else tokens))
    return Answer(said, len(tokens), time.monotonic() - began, ended)


class _Shown:
    """Prints an answer while it comes: reasoning under its heading, calls under theirs."""

    def __init__(self, model: LoadedModel) -> None:
        self._tokenizer, self._printed = model.tokenizer, 0
        self._tokens: list[int] = []

    def add(self, token: int) -> None:
        """One token more; characters that are not whole yet wait for the next."""
        self._tokens.append(token)
        text = _headed(self._tokenizer.decode(self._tokens))
        if not text.endswith("\N{REPLACEMENT CHARACTER}"):
            sys.stdout.write(text[self._printed :])
            sys.stdout.flush()
            self._printed = len(text)


def _headed(text: str) -> str:
    """An answer with headings in the place of its markers."""
    headed = text.replace(f"{THINK_START}\n", "reasoning\n  ").replace(f"{THINK_END}\n", "")
    return headed.replace(CALL_START, "calls\n  ").replace(CALL_END, "\n").replace(TURN_END, "")


def _problems(example: Example, answer: Answer) -> list[str]:
    """What is wrong with an answer, in words."""
    if answer.said.calls is None:
        return [f"the answer {answer.said.problem}"]
    found = [call_problem(example.tools, call.name, call.arguments) for call in answer.said.calls]
    return [problem for problem in found if problem]


def _print_end(answer: Answer, problems: list[str], uncovered: list[str]) -> None:
    rate = answer.tokens / max(answer.seconds, 1e-9)
    if not answer.ended:
        print()
    print(f"tokens     {answer.tokens} in {answer.seconds:.2f} s, {rate:.0f}/s with compiling")
    if uncovered:
        print(f"not held to {', '.join(uncovered)}: words of the schemas that are only checked afterwards")
    for problem in problems:
        say(f"needle: {problem}")


def _print_document(
    form: Form, example: Example, answer: Answer, problems: list[str], uncovered: list[str]
) -> None:
    calls = None if answer.said.calls is None else [call._asdict() for call in answer.said.calls]
    document = {
        "weights": form.name,
        "prompt": render(example)[0],
        "reasoning": answer.said.reasoning,
        "calls": calls,
        "text": answer.said.text,
        "problems": problems,
        "not_held_to": uncovered,
        "ended": answer.ended,
        "tokens": answer.tokens,
        "seconds": round(answer.seconds, 3),
    }
    print_json(document)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
