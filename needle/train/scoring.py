"""The scores a fine-tuning run ends with: base and tuned model on the validation split, as both ship."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from needle.data.calls import Scores
from needle.data.tokenizer import Tokenizer
from needle.model.adapters import AdapterFile
from needle.model.architecture import Execution
from needle.model.export import choose_numerics, merged
from needle.model.parameters import flatten, unflatten
from needle.train.evaluate import Form, evaluate, float_form, prompt_tokens, shipped_form
from needle.train.inputs import FinetuneInputs

MOST_EXAMPLES = 256
"""So many say within three points how good a model is; more would keep a person waiting."""

Told = Callable[[str, str, Scores], None]
"""(model: base or tuned, form of its weights, scores)"""


def score_models(
    inputs: FinetuneInputs,
    adapter: AdapterFile,
    execution: Execution,
    tell: Told,
    stop_requested: Callable[[], bool],
) -> str:
    """Score the base and the tuned model. Returns why nothing or only a part was scored, usually nothing."""
    tokenizer = Tokenizer.load(inputs.tokenizer)
    most = inputs.base.config.max_seq_len
    fitting = [one for one in inputs.validation if len(prompt_tokens(one, tokenizer)) <= most]
    if not fitting:
        return "there is no validation example to score it on"
    for model, form in _forms(inputs, adapter, execution):
        found = evaluate(form, fitting[:MOST_EXAMPLES], tokenizer, stop_requested=stop_requested)
        if not found.complete:
            return "stopped on request before all was scored"
        tell(model, form.name, found.scores)
    return ""


def _forms(inputs: FinetuneInputs, adapter: AdapterFile, execution: Execution) -> Iterator[tuple[str, Form]]:
    """Each model exactly and rounded as `needle build` would round the tuned one; one at a time in memory."""
    config, flat = inputs.base.config, flatten(inputs.base.params)
    rounding = choose_numerics(adapter, config).bit_map
    for model, lora in (("base", {}), ("tuned", adapter.lora)):
        params: Mapping[str, Any] = unflatten(merged(flat, lora, adapter.scale))
        yield model, float_form(params, config, execution)
        yield model, shipped_form(params, config, rounding, execution)
