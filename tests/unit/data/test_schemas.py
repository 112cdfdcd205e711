"""Tools as they are declared, and calls held against them."""

import json

import pytest

from needle.data.schemas import call_problem, declared_tools

SCHEMA = {
    "type": "object",
    "properties": {"room": {"type": "string"}, "level": {"type": "integer", "minimum": 0}},
    "required": ["room"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_a_schema_is_found_under_each_of_its_names(key):
    tools = json.dumps([{"name": "dim", key: SCHEMA}])
    assert declared_tools(tools)["dim"].schema == SCHEMA


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"room": "den", "level": 3}, ""),
        ({"level": 3}, "'room' is a required property"),
        ({"room": "den", "level": "3"}, "'dim'.level: '3' is not of type 'integer'"),
        ({"room": "den", "level": -1}, "less than the minimum"),
        ({"room": "den", "mood": 1}, "'mood' was unexpected"),
    ],
)
def test_a_call_is_held_against_its_schema(arguments, problem):
    found = call_problem(json.dumps([{"name": "dim", "parameters": SCHEMA}]), "dim", arguments)
    assert (problem in found) if problem else not found


def test_a_tool_that_is_not_declared_is_named():
    assert call_problem("[]", "dim", {}) == "calls 'dim', which is not declared"


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"type": "object", "required": 3}])
def test_a_schema_that_is_wrong_itself_asks_for_nothing(schema):
    assert not call_problem(json.dumps([{"name": "f", "parameters": schema}]), "f", {"a": 1})


def test_a_bare_mapping_of_names_is_taken_as_properties():
    tools = json.dumps([{"name": "f", "parameters": {"a": {"type": "string"}}}])
    assert declared_tools(tools)["f"].schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert "not of type" in call_problem(tools, "f", {"a": 1})


def test_a_reference_that_leads_nowhere_is_said_and_not_raised():
    tools = json.dumps(
        [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"$ref": "#/no"}}}}]
    )
    assert "cannot be followed" in call_problem(tools, "f", {"a": 1})
