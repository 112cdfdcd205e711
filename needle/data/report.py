"""What a data file holds, before anything is trained on it: how much, how alike, and what does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from needle.data.calls import parse_calls
from needle.data.examples import ExampleFile, LineProblem
from needle.data.parsing import Example
from needle.data.schemas import call_problem, declared_tools
from needle.data.tokenizer import TokenizedExample

CHECKED_EXAMPLES = 20_000
"""So many answers are held against their tools; in a longer file, the first ones."""
_NAMED = 6


@dataclass(frozen=True)
class DataReport:
    """Counts of one file. Tokens are 0 where nothing could count them.

    `repeated` are lines whose prompt occurs before them, `contradicting` those of them with another answer;
    `off_topic` is the number of examples that call nothing; `never_called` are tools that are declared and
    that no answer uses; `broken` says of lines how their calls break what their tools declare.
    """

    examples: int
    tokens: int
    longest: int
    target_tokens: int
    repeated: tuple[int, ...]
    contradicting: tuple[int, ...]
    off_topic: int
    tools: int
    never_called: tuple[str, ...]
    broken: tuple[LineProblem, ...]
    checked: int


def report_on(read: ExampleFile, tokenized: Sequence[TokenizedExample]) -> DataReport:
    """Look at every example of a file; `tokenized` are those it has as tokens, or nothing."""
    repeated, contradicting = _repeats(read.examples)
    declared: set[str] = set()
    called: Counter[str] = Counter()
    broken: list[LineProblem] = []
    off_topic = 0
    for number, example in enumerate(read.examples):
        declared |= declared_tools(example.tools).keys()
        calls = parse_calls(example.answers)
        called.update(call.name for call in calls)
        off_topic += not calls
        if number < CHECKED_EXAMPLES:
            problems = (call_problem(example.tools, call.name, call.arguments) for call in calls)
            broken += [LineProblem(example.line, problem) for problem in problems if problem][:1]
    return DataReport(
        examples=len(read.examples),
        tokens=sum(map(len, tokenized)),
        longest=max(map(len, tokenized), default=0),
        target_tokens=sum(example.target_tokens for example in tokenized),
        repeated=tuple(repeated),
        contradicting=tuple(contradicting),
        off_topic=off_topic,
        tools=len(declared),
        never_called=tuple(sorted(declared - called.keys())),
        broken=tuple(broken),
        checked=min(len(read.examples), CHECKED_EXAMPLES),
    )


def report_lines(report: DataReport) -> list[str]:
    """The report in words, a line each: how much there is, then what was found."""
    lines = [amount_text(report)]
    for finding in findings_of(report):
        lines.append(f"{finding.text}:" if finding.details else finding.text)
        lines += [f"  {detail}" for detail in finding.details]
    return lines


class Finding(NamedTuple):
    """Something found in a file, with the lines it was found in where they need words of their own."""

    text: str
    details: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        return ": ".join(filter(None, (self.text, "; ".join(self.details))))


def findings_of(report: DataReport) -> list[Finding]:
    """Counts first, then what a person may want to mend."""
    share = report.off_topic / report.examples
    found = [Finding(f"tools declared: {report.tools:,}; {share:.0%} of the examples call none")]
    if report.never_called:
        count = _count(report.never_called, "tool is", "tools are")
        found.append(Finding(f"{count} never called: {_some(report.never_called)}"))
    if report.repeated:
        other = len(report.contradicting)
        wrong = f", {other:,} of them with another answer: lines {_some(report.contradicting)}"
        count = _count(report.repeated, "prompt occurs", "prompts occur")
        found.append(Finding(f"{count} before" + (wrong if other else f": lines {_some(report.repeated)}")))
    if report.broken:
        first = "" if report.checked == report.examples else f" of the first {report.checked:,}"
        text = f"{_count(report.broken, 'answer', 'answers')}{first} broke what their tools declare"
        details = [f"line {line}: {problem}" for line, problem in report.broken[:_NAMED]]
        if len(report.broken) > _NAMED:
            details.append(f"… {len(report.broken) - _NAMED:,} more")
        found.append(Finding(text, tuple(details)))
    return found


def amount_text(report: DataReport) -> str:
    """`480 examples, 76,208 tokens, the longest 270; 16,088 (21%) are learned`."""
    examples = f"{report.examples:,} example{'s' if report.examples != 1 else ''}"
    if not report.tokens:
        return examples
    share = report.target_tokens / report.tokens
    return (
        f"{examples}, {report.tokens:,} tokens, the longest {report.longest:,}; "
        f"{report.target_tokens:,} ({share:.0%}) are learned"
    )


def _count(values: Sequence[object], one: str, more: str) -> str:
    return f"{len(values):,} {one if len(values) == 1 else more}"


def _some(values: Sequence[object]) -> str:
    return ", ".join(map(str, values[:_NAMED])) + (", …" if len(values) > _NAMED else "")


def _repeats(examples: Sequence[Example]) -> tuple[list[int], list[int]]:
    """Lines whose prompt came before, and those of them whose answer is another than the first one's."""
    seen: dict[tuple[str, str, str], str] = {}
    repeated, contradicting = [], []
    for example in examples:
        prompt = (example.system, example.tools, example.query)
        if prompt not in seen:
            seen[prompt] = example.answers
            continue
        repeated.append(example.line)
        if seen[prompt] != example.answers:
            contradicting.append(example.line)
    return repeated, contradicting
