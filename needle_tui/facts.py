"""The facts of a run, each with its reason: what was planned, corrected by what the trainer found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from needle.data.score_table import share_text
from needle.runs.events import Event, whole
from needle.runs.record import Decision, RunRequest
from needle.units import duration_text


def facts_of(request: RunRequest, events: Sequence[Event]) -> tuple[tuple[str, Decision], ...]:
    """Named decisions in the order people ask for them."""
    plan, backend, data = request.plan, _last(events, "backend"), _last(events, "data")
    compiled = _last(events, "compiled")
    found = [
        ("Backend", _with_choice(plan.backend, _device_words(backend))),
        ("Attention", _with_choice(plan.kernel, _words(backend, "kernel"))),
        ("Precision", _with_choice(plan.precision, _words(backend, "precision"))),
        *([("Rounding", plan.rounding)] if plan.rounding else []),
        ("Data set", plan.placement),
        ("Base", plan.base),
    ]
    if data:
        reasons = [_data_reason(data), plan.data.reason if plan.data else ""]
        found.append(("Data", Decision(_data_words(data), "; ".join(filter(None, reasons)))))
    if compiled and isinstance(compiled.get("seconds"), (int, float)):
        seconds = float(str(compiled["seconds"]))
        jax = f"jax {backend['jax']}" if backend.get("jax") else ""
        found.append(
            ("Compiled", Decision(f"in {duration_text(seconds)}" if seconds >= 1 else "in under 1s", jax))
        )
    scores = scores_of(events)
    if scores:
        found.append(("Exact calls", scores))
    results = results_of(events)
    if results:
        found.append(("Result", Decision(Path(results[0]).name, results[0])))
    return tuple(found)


def scores_of(events: Sequence[Event]) -> Decision | None:
    """How good the tuned model is in the form it ships, beside the base; None while nothing was scored."""
    told = [event for event in events if event.get("kind") == "scores"]
    tuned = [event for event in told if event.get("model") == "tuned"]
    if not tuned:
        return None
    shipped = tuned[-1]
    same = [
        event
        for event in told
        if (event.get("model"), event.get("weights")) == ("base", shipped.get("weights"))
    ]
    base = f", base {_exact(same[-1])}" if same else ""
    others = "; ".join(f"{event.get('weights')}: {_exact(event)}" for event in tuned[:-1])
    rates = (
        f"right tools {_share(shipped, 'right_tools', 'examples')}, "
        f"right arguments {_share(shipped, 'right_arguments', 'arguments')}, "
        f"false calls {_share(shipped, 'false_calls', 'off_topic')}, "
        f"missed {_share(shipped, 'missed_calls', 'on_topic')}"
    )
    return Decision(
        f"{_exact(shipped)} with {shipped.get('weights')}{base}", "; ".join(filter(None, (rates, others)))
    )


def results_of(events: Sequence[Event]) -> tuple[str, ...]:
    """Files the run has made, newest first: adapters, then checkpoints."""
    paths = [
        str(event.get("path", "")) for event in events if event.get("kind") in ("artifact", "checkpoint")
    ]
    return tuple(dict.fromkeys(path for path in reversed(paths) if path))


def _exact(event: Event) -> str:
    return _share(event, "exact", "examples")


def _share(event: Event, count: str, of: str) -> str:
    return share_text(whole(event.get(count), 0), whole(event.get(of), 0))


def _last(events: Sequence[Event], kind: str) -> Event:
    return next((event for event in reversed(events) if event.get("kind") == kind), {})


def _words(event: Event, *names: str) -> str:
    return ", ".join(str(event[name]) for name in names if event.get(name))


def _device_words(backend: Event) -> str:
    """`cuda, NVIDIA H200`; a CPU that calls itself cpu is said once."""
    words = dict.fromkeys(str(backend[name]) for name in ("platform", "device") if backend.get(name))
    return ", ".join(words)


def _with_choice(planned: Decision, found: str) -> Decision:
    return Decision(found or planned.choice, planned.reason)


def _data_words(data: Event) -> str:
    train, validation = data.get("train"), data.get("validation")
    return (
        f"{train} train, {validation} validation" if train is not None else f"{data.get('examples')} examples"
    )


def _data_reason(data: Event) -> str:
    parts = []
    if data.get("rows") and data.get("length"):
        parts.append(f"batches of {data['rows']} rows of {data['length']} tokens")
    skipped = data.get("skipped")
    if isinstance(skipped, list) and skipped:
        parts.append(f"{len(skipped)} examples left out as too long")
    return "; ".join(parts)
