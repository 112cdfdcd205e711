"""Walks at random through the grammar of answers only ever end in calls that keep to the schemas."""

import json
import random

import pytest

from needle.data.calls import parse_said
from needle.data.grammar import State, advance, answer_rule, closing, not_covered, start
from needle.data.markers import (
    CALL_END,
    CALL_START,
    MARKER_SYMBOLS,
    MARKERS,
    THINK_END,
    THINK_START,
    TURN_END,
)
from needle.data.schemas import call_problem

TOOLS = json.dumps([
    {"name": "dim", "parameters": {"type": "object", "required": ["room"], "properties": {
        "room": {"type": "string"}, "level": {"type": "integer"}, "warm": {"type": "boolean"},
        "mode": {"type": "string", "enum": ["low", "höch", "a\"b"]}, "power": {"type": "number"},
    }}},
    {"name": "dim_all"},
    {"name": "plan", "parameters": {"type": "object", "required": ["stops", "when"], "properties": {
        "stops": {"type": "array", "items": {"type": "object", "required": ["x"],
                  "properties": {"x": {"type": "integer"}, "note": {"type": ["string", "null"]}}}},
        "when": {"anyOf": [{"type": "integer"}, {"const": "now"}]}, "free": {},
    }}},
])  # fmt: skip


def symbols_of(text: str) -> list[int]:
    found: list[int] = []
    while text:
        marker = next((one for one in MARKERS if text.startswith(one)), "")
        found += [MARKER_SYMBOLS[marker]] if marker else text[0].encode()
        text = text[len(marker) or 1 :]
    return found


def text_of(symbols: list[int]) -> str:
    names = {symbol: marker for marker, symbol in MARKER_SYMBOLS.items()}
    parts = (names[one].encode() if one in names else bytes([one]) for one in symbols)
    return b"".join(parts).decode("utf-8")


def follow(text: str, tools: str = TOOLS) -> State:
    state = start(answer_rule(tools))
    for symbol in symbols_of(text):
        state = advance(state, symbol)
    return state


def answer(calls: str) -> str:
    return f"{CALL_START}{calls}{CALL_END}{TURN_END}"


@pytest.mark.parametrize(
    "calls",
    [
        "[]",
        '[{"name":"dim","arguments":{"room":"Zoë\\n\\u00e9 \N{ROCKET}"}}]',
        '[{"name":"dim","arguments":{"level":-30,"room":"","power":0.25,"warm":true,"mode":"höch"}}]',
        '[{"name":"dim_all","arguments":{"any":[1,{"thing":null}]}},{"name":"dim_all","arguments":{}}]',
        '[{"name":"plan","arguments":{"when":"now","stops":[{"x":1},{"note":null,"x":2}],"free":[]}}]',
    ],
)
def test_what_keeps_to_the_schemas_is_let_through(calls):
    assert follow(answer(calls)) == {()}
    assert follow(f"{THINK_START}\nrooms,\n\nthen Zoë\n{THINK_END}\n{answer(calls)}") == {()}
    assert follow(f" {answer(calls)}") == {()}


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        '[{"name":"other"',
        '[{"name":"dim","arguments":{}',
        '[{"name":"dim","arguments":{"room":3',
        '[{"name":"dim","arguments":{"size"',
        '[{"name":"dim","arguments":{"level":1.5',
        '[{"name":"dim","arguments":{"level":01',
        '[{"name":"dim","arguments":{"mode":"mid"',
        '[{"name":"dim","arguments":{"room":"a","room"',
        '[{"name":"dim","arguments":{"room":"a\n',
        '[{"name":"dim","arguments":{"room":"\\ud800',
        '[{"name":"plan","arguments":{"stops":[{}',
        '[{"name":"dim_all","arguments":{}},]',
        "[,",
    ],
)
def test_what_breaks_them_is_not(text):
    assert not follow(text if text == "hello" else CALL_START + text)


def test_bytes_that_are_no_utf8_are_not_let_into_a_text():
    state = follow(f'{CALL_START}[{{"name":"dim","arguments":{{"room":"')
    assert not advance(state, 0xFF)
    assert not advance(advance(state, 0xC3), 0x28)
    assert not advance(advance(state, 0xED), 0xA0)  # half of a surrogate pair
    assert advance(advance(state, 0xC3), 0xA9)


@pytest.mark.parametrize("seed", range(40))
def test_a_walk_at_random_can_be_closed_at_any_time_and_keeps_to_the_schemas(seed):
    generator = random.Random(seed)
    state, said = start(answer_rule(TOOLS)), list[int]()
    everything = [*range(256), *MARKER_SYMBOLS.values()]
    for _ in range(generator.randrange(250)):
        generator.shuffle(everything)
        following = [(symbol, advance(state, symbol)) for symbol in everything]
        allowed = [(symbol, after) for symbol, after in following if after]
        if not allowed:
            break
        # Prefer what begins calls, or most walks would be one long thought.
        calls = [pair for pair in allowed if pair[0] in (MARKER_SYMBOLS[CALL_START], *b"[{,:")]
        symbol, state = generator.choice(calls if calls and generator.random() < 0.7 else allowed)
        said.append(symbol)
    while state != {()}:
        symbol, *rest = closing(state)
        state = advance(state, symbol)
        said.append(symbol)
        assert len(closing(state)) == len(rest)
    found = parse_said(text_of(said).strip())
    assert found.calls is not None, found.problem
    assert [call_problem(TOOLS, call.name, call.arguments) for call in found.calls] == [""] * len(found.calls)


def test_without_tools_nothing_can_be_called():
    assert follow(answer("[]"), "[]") == {()}
    assert not follow(f"{CALL_START}[{{", "[]")


def test_words_that_an_answer_is_not_held_to_are_named():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x", "description": "y"},
              "b": {"type": "array", "items": {"type": "integer", "minimum": 1}}}, "allOf": []}  # fmt: skip
    assert not_covered(json.dumps([{"name": "f", "parameters": schema}])) == ["allOf", "minimum", "pattern"]
    assert not_covered(TOOLS) == []
