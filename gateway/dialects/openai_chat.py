"""OpenAI's Chat Completions, as vLLM and SGLang speak it.

Decided here: where images and text stand in a request, which values are too misshapen to forward, and how errors are
spelt. Not decided here: whether a field we do not read is right (the engine's to say; it is forwarded as it came).

Rules where the engines leave room (for those about parts see ``parts``):

* all images are delivered in the one form that every engine takes, ``image_url.url``;
* of ``max_tokens`` and ``max_completion_tokens`` the larger counts, since engines differ in which they obey;
* null for an optional field is the same as its absence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.dialects import fields
from gateway.dialects.answers import is_text, number, objects
from gateway.dialects.parts import PartReader
from gateway.dialects.text import json_bytes, text_bytes
from gateway.dialects.usage import last_usage
from gateway.errors import GatewayError, InvalidRequest
from gateway.types import Answer, AnswerText, Call, Json, JsonObject, Pointer, RequestId, Usage, dotted, foreign

# Part types that hold an image.
IMAGE_TYPES = frozenset({"image_url", "input_image"})
# Members of a message that templates print besides its content.
_MESSAGE_TEXTS = ("name", "reasoning", "reasoning_content", "refusal")


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """``POST /v1/chat/completions``."""

    name: str = "openai_chat"
    paths: tuple[str, ...] = ("/v1/chat/completions",)
    counts_only: bool = False
    keeps_responses: bool = False

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``messages.1.content.0.image_url``)."""
        reader = PartReader(IMAGE_TYPES, one_form=True, takes_ids=True)
        messages = tree.get("messages")
        if not isinstance(messages, list):
            raise InvalidRequest("A list of messages is expected.", part="messages")
        for index, message in enumerate(messages):
            read_message(reader, ("messages", index), message)
        reader.text_bytes += sum(json_bytes(tree[key]) for key in ("tools", "functions") if tree.get(key))
        stream = fields.flag(tree, "stream")
        options = tree.get("stream_options")
        wants_usage = not stream or (isinstance(options, dict) and options.get("include_usage") is True)
        return Call(
            model=fields.model(tree),
            stream=stream,
            wants_usage=wants_usage,
            output_limit_tokens=_output_limit(tree),
            output_limit_field="max_tokens" if tree.get("max_completion_tokens") is None else "max_completion_tokens",
            images=tuple(reader.images),
            text_bytes=reader.text_bytes,
            message_count=len(messages),
            choices=fields.count(tree, "n", at_least=1) or 1,
            user=fields.string(tree.get("user")),
            task=fields.task(tree.get("metadata")),
            other_media=tuple(reader.other_media),
            has_tools=bool(tree.get("tools") or tree.get("functions")),
            foreign_fields=(*((key,) for key in fields.engine_fields(tree, foreign.BODY)), *reader.foreign_fields),
        )

    def error_body(self, error: GatewayError, _request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, which its SDKs turn into exceptions by status. The id travels in a header."""
        message = f"{error.part}: {error.message}" if error.part else error.message
        members = {"message": message, "type": error.openai_type, "param": error.part, "code": error.told_code}
        return json.dumps({"error": members}).encode()

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """One event with the envelope: the SDKs raise on an event that has ``error``."""
        return b"data: " + self.error_body(error, request_id) + b"\n\n"

    def answer(self, tree: JsonObject) -> Answer:
        """What each choice (its message or delta) says, thinks and calls; it ends with its ``finish_reason``."""
        texts: list[AnswerText] = []
        ended: list[str] = []
        for pointer, choice in objects(tree, ("choices",)):
            channel = str(number(choice.get("index")))
            for key in ("message", "delta"):
                holder = choice.get(key)
                if isinstance(holder, dict):
                    texts += _said((*pointer, key), holder, channel, whole=key == "message")
            if choice.get("finish_reason") is not None:
                ended.append(channel)
        return Answer(tuple(texts), tuple(ended))

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (both forms spell it alike)
        """``usage`` of the completion, or of the last chunk that has one."""
        return last_usage(tail)


def _said(at: Pointer, holder: JsonObject, channel: str, *, whole: bool) -> Iterator[AnswerText]:
    for name in ("content", "reasoning", "reasoning_content"):
        if is_text(holder.get(name)):
            yield AnswerText((*at, name), channel if name == "content" else f"{channel}.{name}", whole)
    for inner, called in objects(holder, ("tool_calls",)):
        function = called.get("function")
        if isinstance(function, dict) and is_text(function.get("arguments")):
            place = (*at, *inner, "function", "arguments")
            yield AnswerText(place, f"{channel}.call.{number(called.get('index'))}", whole)


def read_message(reader: PartReader, pointer: Pointer, message: Json) -> None:
    """One message of a conversation. Raises InvalidRequest."""
    if not isinstance(message, dict):
        raise InvalidRequest("A message is an object.", part=dotted(pointer))
    reader.content((*pointer, "content"), message.get("content"))
    for key in _MESSAGE_TEXTS:
        if key in message:
            reader.text(message[key])
    if message.get("tool_calls"):
        reader.text_bytes += _tool_call_bytes(message["tool_calls"])


def _tool_call_bytes(calls: Json) -> int:
    """Names and arguments of the functions an assistant called."""
    if not isinstance(calls, list):
        return 0
    functions = [call.get("function") for call in calls if isinstance(call, dict)]
    return sum(
        text_bytes(function.get("name")) + text_bytes(function.get("arguments"))
        for function in functions
        if isinstance(function, dict)
    )


def _output_limit(tree: JsonObject) -> int | None:
    newer, older = (fields.count(tree, name, at_least=0) for name in ("max_completion_tokens", "max_tokens"))
    if newer is None or older is None:
        return older if newer is None else newer
    return max(newer, older)
