"""How often a model calls what it should: examples are answered by generation, and the calls compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from needle.data.calls import Call, Said, Scores, parse_calls, parse_said
from needle.data.examples import Example, render
from needle.data.markers import BOS_ID
from needle.data.tokenizer import Tokenizer
from needle.model.architecture import Execution, SimpleAttentionNetwork
from needle.model.bitmap import BitMap
from needle.model.configuration import TransformerConfig
from needle.model.decode import Generated, Generator
from needle.model.fake_quantise import fake_quantised_params
from needle.model.parameters import flatten, parameter_shapes, unflatten
from needle.model.picking import Sampler, held_to

ANSWER_TOKENS = 256
"""An answer that is longer is taken as it is by then, which usually means that it cannot be read."""
BATCH_ROWS = 16
FLOAT = "float32"

Progress = Callable[[str, int], None]
"""(form, examples answered so far)"""


class Form(NamedTuple):
    """A model in one of its forms: as trained, as it ships, as it was read from an archive."""

    name: str
    generator: Generator


class Failure(NamedTuple):
    """An example that was answered wrongly."""

    form: str
    example: Example
    said: Said


@dataclass
class Evaluation:
    """What one form of a model scored; `complete` is False when it was stopped before the last example."""

    form: str
    scores: Scores = field(default_factory=Scores)
    failures: list[Failure] = field(default_factory=list)
    complete: bool = True


def float_form(params: Mapping[str, Any], config: TransformerConfig, execution: Execution) -> Form:
    """Merged parameters as they are."""
    model = SimpleAttentionNetwork(config, execution)
    return Form(FLOAT, Generator(model, {"params": _forward_part(params, config)}))


def shipped_form(
    params: Mapping[str, Any], config: TransformerConfig, rounding: BitMap, execution: Execution
) -> Form:
    """Merged parameters rounded as `needle build` rounds them, and activations as the engine does."""
    model = SimpleAttentionNetwork(config, execution)
    rounded = fake_quantised_params(_forward_part(params, config), rounding)
    return Form(rounding.words, Generator(model, {"params": rounded}, quant=True))


def archived_form(
    name: str, params: Mapping[str, Any], config: TransformerConfig, execution: Execution
) -> Form:
    """Parameters read from an archive, which are rounded already."""
    model = SimpleAttentionNetwork(config, execution)
    return Form(name, Generator(model, {"params": _forward_part(params, config)}, quant=True))


def evaluate(
    form: Form,
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    *,
    constrained: bool = False,
    progress: Progress | None = None,
    stop_requested: Callable[[], bool] | None = None,
) -> Evaluation:
    """Answer every example greedily and compare; failures come in the order of the file.

    With `constrained`, every answer is held to the tools that its example declares.
    Examples of like length are answered together, so that little is padded. Between two batches a stop is
    heeded: what was answered by then is what the evaluation is of.
    """
    found = Evaluation(form.name)
    prompts = [prompt_tokens(example, tokenizer) for example in examples]
    order = sorted(range(len(examples)), key=lambda number: len(prompts[number]))
    for start in range(0, len(order), BATCH_ROWS):
        if stop_requested is not None and stop_requested():
            found.complete = False
            break
        members = order[start : start + BATCH_ROWS]
        rows = members + members[-1:] * (BATCH_ROWS - len(members))  # one shape for all batches
        pick = None
        if constrained:
            tools = [examples[number].tools for number in rows]
            pick = held_to(tools, tokenizer, ANSWER_TOKENS, Sampler())
        answers = form.generator.generate([prompts[number] for number in rows], ANSWER_TOKENS, pick)
        for number, answer in zip(members, answers, strict=False):
            _count(found, examples[number], said_of(answer, tokenizer))
        if progress is not None:
            progress(form.name, found.scores.examples)
    found.failures.sort(key=lambda failure: failure.example.line)
    return found


def prompt_tokens(example: Example, tokenizer: Tokenizer) -> list[int]:
    """What a model is given of an example: everything before the answer, as in training."""
    return [BOS_ID, *tokenizer.encode(render(example)[0])]


def said_of(answer: Generated, tokenizer: Tokenizer) -> Said:
    """A generated answer, read."""
    return parse_said(tokenizer.decode(answer.tokens))


def expected_calls(example: Example) -> tuple[Call, ...]:
    """The calls that are right for an example."""
    return parse_calls(example.answers)


def _count(found: Evaluation, example: Example, said: Said) -> None:
    if not found.scores.add(expected_calls(example), said):
        found.failures.append(Failure(found.form, example, said))


def _forward_part(params: Mapping[str, Any], config: TransformerConfig) -> dict[str, Any]:
    """The parameters that generation needs: output heads stay behind."""
    flat = flatten(params)
    return unflatten({path: flat[path] for path in parameter_shapes(config)})
