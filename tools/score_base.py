"""Score a base on tools made up for it, by kind of novelty: `python -m tools.score_base [BASE] [COUNT]`."""

from __future__ import annotations

import sys
from pathlib import Path

from needle.data.calls import Scores
from needle.data.parsing import parse_example
from needle.data.sample import sample_base, sample_directory
from needle.data.score_table import score_lines
from needle.data.tokenizer import Tokenizer
from needle.model import load_checkpoint
from needle.model.architecture import Execution
from needle.model.bitmap import parse_bit_map
from needle.train.evaluate import evaluate, shipped_form
from tools.train_base import held_out_rows

COUNT = 100


def main(arguments: list[str]) -> None:
    """Print one table: a column for each kind, of the weights as they ship."""
    base = Path(arguments[0]) if arguments else sample_base()
    count = int(arguments[1]) if len(arguments) > 1 else COUNT
    params, config = load_checkpoint(base)
    form = shipped_form(params, config, parse_bit_map("default=4"), Execution())
    tokenizer = Tokenizer.load(sample_directory() / "tokenizer.model")
    found: list[tuple[str, Scores]] = []
    for kind, rows in held_out_rows(count).items():
        examples = [parse_example(row, line).example for line, row in enumerate(rows, 1)]
        found.append((kind, evaluate(form, examples, tokenizer).scores))
    print("\n".join(score_lines(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
