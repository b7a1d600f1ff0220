"""From the body of a chat request to what a template is given: messages, tools, and the template's own variables.

Decided here: the same reshaping that vLLM 0.32.0 does (`entrypoints/chat_utils.py`): a string is one part of text, an
image is a part ``{"type": "image"}``, arguments of tool calls are parsed. Not decided here: how it is rendered. Sources
of images are never looked at, so no base64 ever reaches a template or a tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.types import Json, JsonObject, LongString

# A long string's text; raises `ValueError` where it is none.
Resolve = Callable[[LongString], str]
_TEXT_KINDS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
_IMAGE_KINDS = frozenset({"image_url", "input_image", "image"})
_COPIED = ("name", "tool_call_id", "reasoning", "reasoning_content")


class NotCountable(Exception):
    """The request holds something whose prompt only the engine knows: sound, video, a template of its own."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a template is given. ``is_certain`` is false where engines spell it in ways of their own (tools)."""

    messages: list[dict[str, Any]]
    tools: list[Any] | None
    variables: dict[str, Any]
    images: int
    is_certain: bool


def conversation(tree: JsonObject, resolve: Resolve, *, takes_parts: bool) -> Conversation:
    """Read a parsed body of Chat Completions. Raises `NotCountable`."""
    if tree.get("chat_template") is not None or tree.get("documents") is not None:
        raise NotCountable("the request brings its own template or documents")
    reader = _Reader(resolve, takes_parts=takes_parts)
    raw_messages = tree.get("messages")
    messages = [reader.message(message) for message in raw_messages] if isinstance(raw_messages, list) else []
    raw_tools = tree.get("tools")
    tools = reader.plain(raw_tools) if isinstance(raw_tools, list) and raw_tools else None
    variables: dict[str, Any] = {}
    kwargs = tree.get("chat_template_kwargs")
    if isinstance(kwargs, dict):
        variables |= reader.plain(kwargs)
    for key in ("add_generation_prompt", "continue_final_message"):
        if isinstance(value := tree.get(key), bool):
            variables[key] = value
    if variables.pop("continue_final_message", False):
        raise NotCountable("the last message is to be continued")
    if (effort := tree.get("reasoning_effort")) is not None:
        variables["reasoning_effort"] = effort
    has_tool_text = tools is not None or any("tool_calls" in message for message in messages)
    return Conversation(messages, tools, variables, reader.images, is_certain=not has_tool_text)


class _Reader:
    """Walks the messages in order and counts the images."""

    def __init__(self, resolve: Resolve, *, takes_parts: bool) -> None:
        self._resolve = resolve
        self._takes_parts = takes_parts
        self.images = 0

    def plain(self, value: Json) -> Any:
        """A value with its long strings in place."""
        if isinstance(value, LongString):
            return self._resolve(value)
        if isinstance(value, list):
            return [self.plain(entry) for entry in value]
        if isinstance(value, dict):
            return {key: self.plain(entry) for key, entry in value.items()}
        return value

    def message(self, message: Json) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise NotCountable("a message is no object")
        made: dict[str, Any] = {"role": self.plain(message.get("role"))}
        made["content"] = self._content(message.get("content"))
        for key in _COPIED:
            if message.get(key) is not None:
                made[key] = self.plain(message[key])
        if isinstance(calls := message.get("tool_calls"), list) and calls:
            made["tool_calls"] = [_parsed_call(self.plain(call)) for call in calls]
        return made

    def _content(self, content: Json) -> Any:
        if content is None:
            parts: list[dict[str, Any]] = []
        elif isinstance(content, list):
            parts = [self._part(part) for part in content]
        else:
            parts = [{"type": "text", "text": self.plain(content)}]
        if self._takes_parts:
            return parts
        if any(part["type"] != "text" for part in parts):
            raise NotCountable("the template takes strings, so the engine places the images")
        return "\n".join(part["text"] for part in parts)

    def _part(self, part: Json) -> dict[str, Any]:
        if isinstance(part, str | LongString):
            return {"type": "text", "text": self.plain(part)}
        if not isinstance(part, dict):
            raise NotCountable("a part is no object")
        kind = part.get("type")
        if kind in _IMAGE_KINDS or (kind is None and "image_url" in part):
            self.images += 1
            return {"type": "image"}
        member = _TEXT_KINDS.get(kind) if isinstance(kind, str) else "text" if "text" in part else None
        if member is None:
            raise NotCountable(f"a part of type {kind!r}")
        text = self.plain(part.get(member))
        if not isinstance(text, str):
            raise NotCountable("a part without text")
        return {"type": "text", "text": text}


def _parsed_call(call: Any) -> Any:
    """Engines hand templates the arguments as an object, not as the string that clients send."""
    function = call.get("function") if isinstance(call, dict) else None
    if isinstance(function, dict) and isinstance(arguments := function.get("arguments"), str):
        try:
            parsed = json.loads(arguments) if arguments else {}
        except ValueError:
            raise NotCountable("arguments of a tool call that are no JSON") from None
        return call | {"function": function | {"arguments": parsed}}
    return call
