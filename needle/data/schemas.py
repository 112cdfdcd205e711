"""What tools declare, and how calls keep to it: JSON Schema, checked by the jsonschema library."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from needle.data.jsontext import Json, parse_json

if TYPE_CHECKING:
    import jsonschema

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
"""Where tools keep their schema: as OpenAI, Anthropic and MCP write it."""


@dataclass(frozen=True, eq=False)
class Tool:
    """One declared tool. `schema` is that of its arguments, None where none is declared."""

    name: str
    schema: dict[str, Any] | None

    @functools.cached_property
    def validator(self) -> jsonschema.Draft202012Validator | None:
        """What checks arguments; None without a schema or where the schema itself is wrong."""
        import jsonschema

        if self.schema is None:
            return None
        try:
            jsonschema.Draft202012Validator.check_schema(self.schema)
        except jsonschema.SchemaError:
            return None
        return jsonschema.Draft202012Validator(self.schema)


@functools.lru_cache(maxsize=4096)
def declared_tools(tools: str) -> dict[str, Tool]:
    """The tools that canonical JSON text declares, by name; of two with one name the first."""
    found: dict[str, Tool] = {}
    for declared in _objects(parse_json(tools)):
        name = declared.get("name")
        if isinstance(name, str):
            found.setdefault(name, Tool(name, _schema_of(declared)))
    return found


def call_problem(tools: str, name: str, arguments: dict[str, Json]) -> str:
    """How a call breaks what its tool declares, in words for a person; empty when it does not."""
    tool = declared_tools(tools).get(name)
    if tool is None:
        return f"calls {name[:40]!r}, which is not declared"
    if tool.validator is None:
        return ""
    try:
        error = next(iter(tool.validator.iter_errors(arguments)), None)
    except Exception as failure:
        return f"{name[:40]!r} has a schema that cannot be followed: {failure}"[:200]
    if error is None:
        return ""
    where = "".join(f".{part}" for part in error.absolute_path)
    return f"{name[:40]!r}{where}: {error.message}"[:200]


def _objects(value: Json) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _schema_of(tool: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of a tool's arguments; a bare mapping of names to schemas is taken as its properties."""
    found = [tool[key] for key in _SCHEMA_KEYS if isinstance(tool.get(key), dict)]
    if not found:
        return None
    schema: dict[str, Any] = found[0]
    if schema and "type" not in schema and "properties" not in schema and _all_objects(schema):
        return {"type": "object", "properties": schema}
    return schema


def _all_objects(schema: dict[str, Any]) -> bool:
    return all(isinstance(value, dict) and not key.startswith("$") for key, value in schema.items())
