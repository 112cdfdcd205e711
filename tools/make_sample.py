"""Make the embedded sample: `python -m tools.make_sample [DIRECTORY]`.

Writes `train.jsonl`, `heldout.jsonl` and `tokenizer.model`; the same seed gives the same files. The embedded
tokenizer is older than that: some choices in `base_rows` followed the hash seed of the process that
learned it, and 1,017 of its 1,024 pieces come out again. The embedded base was trained with it, so it stays;
a base trained anew takes the tokenizer that is learned with it.
"""

from __future__ import annotations

import io
import json
import random
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from needle.data.examples import Example, read_examples, render
from needle.data.markers import BOS_ID, EOS_ID, MARKERS, PAD_ID, UNKNOWN_ID
from needle.data.parsing import parse_example
from needle.data.sample import sample_directory
from needle.runs.record import write_atomically
from tools.base_rows import example_rows
from tools.sample_phrases import SAME_ARGUMENT, TOOLS, Phrase, Row, Tool
from tools.sample_values import OFF_TOPIC, OFF_TOPIC_HELD_OUT, POOLS, SYSTEMS, Value

SEED = 20
TRAINING_EXAMPLES = 480
HELD_OUT_EXAMPLES = 60
VOCABULARY = 1024
BASE_EXAMPLES = 4000

_POLITENESS = ("{}", "{}", "{}", "please {}", "{} please", "can you {}", "could you {}", "hey, {}")
_JOINTS = (" and ", " and then ", ", then ")
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Request:
    """What is said, the call that is meant, and how each argument follows from the words."""

    said: str
    call: Row
    reasons: list[str]


def main() -> None:
    """Write the three files and say what they hold."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else sample_directory()
    directory.mkdir(parents=True, exist_ok=True)
    training, held_out = make_rows()
    write_rows(directory / "train.jsonl", training)
    write_rows(directory / "heldout.jsonl", held_out)
    examples = read_examples(directory / "train.jsonl").examples
    write_atomically(directory / "tokenizer.model", train_tokenizer([*base_examples(), *3 * examples]))
    print(
        f"{directory}: {len(training)} training and {len(held_out)} held-out examples of {len(TOOLS)} tools"
    )


def make_rows() -> tuple[list[Row], list[Row]]:
    """Training and held-out examples; no query occurs twice in all of them."""
    generator = random.Random(SEED)
    seen: set[str] = set()
    training = _rows(generator, TRAINING_EXAMPLES, seen, held_out=False)
    return training, _rows(generator, HELD_OUT_EXAMPLES, seen, held_out=True)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """One JSON object a line, as a person would write it."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_atomically(path, text.encode("utf-8"))


def base_examples() -> list[Example]:
    """Some of what the embedded base is trained on: its tokenizer is to know more than the sample."""
    rows = zip(range(1, BASE_EXAMPLES + 1), example_rows(SEED), strict=False)
    return [example for line, row in rows if (example := parse_example(row, line).example) is not None]


def train_tokenizer(examples: Iterable[Example]) -> bytes:
    """A SentencePiece model with the settings of the published tokenizer, learned from these examples.

    Line ends are left to byte pieces, as there: a sentence for SentencePiece never holds one.
    """
    import sentencepiece

    lines = [line for example in examples for text in render(example) for line in text.split("\n") if line]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        model_type="bpe",
        vocab_size=VOCABULARY,
        character_coverage=0.9995,
        normalization_rule_name="identity",
        byte_fallback=True,
        user_defined_symbols=list(MARKERS),
        pad_id=PAD_ID,
        eos_id=EOS_ID,
        bos_id=BOS_ID,
        unk_id=UNKNOWN_ID,
        max_sentence_length=8000,
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()


def _rows(generator: random.Random, count: int, seen: set[str], *, held_out: bool) -> list[Row]:
    """Every tool in turn, so that all are learned; one in seven fits no tool, one in nine needs two."""
    rows: list[Row] = []
    while len(rows) < count:
        tool = TOOLS[len(rows) % len(TOOLS)]
        kind = generator.random()
        if kind < 1 / 7:
            row = _unanswerable(generator, tool, held_out)
        elif kind < 1 / 7 + 1 / 9:
            row = _answered(generator, [tool, _other_tools(generator, tool, 1)[0]], held_out)
        else:
            row = _answered(generator, [tool], held_out)
        if str(row["query"]).lower() not in seen:
            seen.add(str(row["query"]).lower())
            rows.append(row)
    return rows


def _answered(generator: random.Random, tools: list[Tool], held_out: bool) -> Row:
    requests = [_request(generator, tool, held_out) for tool in tools]
    # A second request joins in the middle of a sentence, where a question would not read well.
    while len(requests) > 1 and any(request.said.endswith("?") for request in requests):
        requests = [_request(generator, tool, held_out) for tool in tools]
    said = generator.choice(_JOINTS).join(request.said for request in requests)
    offered = [
        *tools,
        *_other_tools(generator, tools, generator.choice((1, 1, 2) if len(tools) == 1 else (0, 1))),
    ]
    generator.shuffle(offered)
    row: Row = {"query": _spoken(generator, said), "tools": [_schema(tool) for tool in offered]}
    row["answers"] = [request.call for request in requests]
    if generator.random() < 0.35:
        row["reasoning"] = "; ".join(reason for request in requests for reason in request.reasons)
    return _with_system(generator, row)


def _unanswerable(generator: random.Random, tool: Tool, held_out: bool) -> Row:
    """Small talk, or a request for a tool that is not offered."""
    if generator.random() < 0.5:
        said = generator.choice(OFF_TOPIC_HELD_OUT if held_out else OFF_TOPIC)
    else:
        said = _spoken(generator, _request(generator, tool, held_out).said)
    offered = _other_tools(generator, tool, generator.choice((2, 2, 3)))
    row: Row = {"query": said, "tools": [_schema(other) for other in offered], "answers": []}
    if generator.random() < 0.2:
        row["reasoning"] = "no tool fits"
    return _with_system(generator, row)


def _request(generator: random.Random, tool: Tool, held_out: bool) -> Request:
    """One thing to ask of a tool, with its arguments in the schema's order."""
    phrase: Phrase = generator.choice(tool.held_out if held_out else tool.phrases)
    said, reasons = phrase.text, []
    arguments: dict[str, Value] = dict(phrase.implied)
    for slot in _SLOT.findall(phrase.text):
        pool = POOLS[tool.pools[slot]]
        values = [
            pair
            for pair in (pool.held_out if held_out else pool.training)
            if pair[1] not in arguments.values()
        ]
        words, meant = generator.choice(values)
        name = SAME_ARGUMENT.get(slot, slot)
        arguments[name] = meant
        said = said.replace("{" + slot + "}", words)
        reasons.append(f"'{words}' -> {name}" if words == str(meant) else f"'{words}' -> {name} {meant}")
    ordered = {name: arguments[name] for name in tool.parameters if name in arguments}
    return Request(said, {"name": tool.name, "arguments": ordered}, reasons)


def _other_tools(generator: random.Random, tools: Tool | list[Tool], count: int) -> list[Tool]:
    used = tools if isinstance(tools, list) else [tools]
    return generator.sample([tool for tool in TOOLS if tool not in used], count)


def _spoken(generator: random.Random, said: str) -> str:
    """The words as typed by different people; only an order can be made polite."""
    is_order = not said.endswith("?") and "please" not in said and not said.startswith(("I ", "we "))
    text = generator.choice(_POLITENESS).format(said) if is_order else said
    if text.startswith(("can you", "could you")):
        text += "?"
    return text[0].upper() + text[1:] if generator.random() < 0.3 else text


def _with_system(generator: random.Random, row: Row) -> Row:
    if generator.random() < 0.06:
        row["system"] = generator.choice(SYSTEMS)
    return row


def _schema(tool: Tool) -> Row:
    properties = {
        name: {"type": "string", "enum": kind} if isinstance(kind, list) else {"type": kind}
        for name, kind in tool.parameters.items()
    }
    parameters = {"type": "object", "properties": properties, "required": list(tool.required)}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


if __name__ == "__main__":
    main()
