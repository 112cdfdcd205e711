"""Chat lines (`messages` as OpenAI writes them) as plain examples, where they hold one exchange."""

from __future__ import annotations

from needle.data.jsontext import Json
from needle.data.lines import LineError


def is_chat(record: dict[str, Json]) -> bool:
    """Whether a line is in the chat form; one that has a `query` too is taken as a plain example."""
    return "messages" in record and "query" not in record


def chat_record(record: dict[str, Json], warnings: list[str]) -> dict[str, Json]:
    """The plain form of a chat line: one user turn and one assistant turn, perhaps a system turn before.

    Raises LineError for any other conversation: what would be left out of it could change its meaning.
    """
    system, user, assistant = _turns(record["messages"])
    plain: dict[str, Json] = {"query": _text(user, "user")}
    tools = record.get("tools", record.get("functions"))
    if tools is not None:
        plain["tools"] = tools
    plain["answers"] = _calls(assistant)
    plain["reasoning"] = record.get("reasoning")
    plain["system"] = _text(system, "system") if system else record.get("system")
    if _has_text(assistant):
        warnings.append("the assistant's text is left out; only its calls are learned")
    return plain


def _turns(messages: Json) -> tuple[dict[str, Json] | None, dict[str, Json], dict[str, Json]]:
    if not isinstance(messages, list) or not all(isinstance(turn, dict) for turn in messages):
        raise LineError("'messages' is not a list of objects")
    turns = [turn for turn in messages if isinstance(turn, dict)]
    roles = ["system" if turn.get("role") == "developer" else turn.get("role") for turn in turns]
    if roles == ["system", "user", "assistant"]:
        return turns[0], turns[1], turns[2]
    if roles == ["user", "assistant"]:
        return None, turns[0], turns[1]
    said = ", ".join(repr(role)[:20] for role in roles[:6]) + (", …" if len(roles) > 6 else "")
    raise LineError(f"'messages' holds [{said}]; what can be learned is one user turn and one assistant turn")


def _calls(assistant: dict[str, Json]) -> Json:
    """`tool_calls`, or the one call of the older `function_call`."""
    if assistant.get("function_call") is not None:
        return [assistant["function_call"]]
    calls = assistant.get("tool_calls")
    return [] if calls is None else calls


def _text(turn: dict[str, Json], role: str) -> str:
    """The text of a turn, which may come in parts."""
    content = turn.get("content")
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else None for part in content]
        if not all(isinstance(part, str) for part in parts):
            raise LineError(f"the {role} turn holds something other than text")
        return "".join(str(part) for part in parts)
    if not isinstance(content, str):
        raise LineError(f"the {role} turn has no text")
    return content


def _has_text(assistant: dict[str, Json]) -> bool:
    content = assistant.get("content")
    return bool(content.strip()) if isinstance(content, str) else bool(content)
