"""OpenAI's Responses, as vLLM and SGLang speak it.

Decided here: where images and text stand among the items of ``input``, and what cannot be answered for and is refused.
Not decided here: whether an item is right (the engine's to say; it is forwarded as it came).

* An image is a part of type ``input_image`` (in a message, in the ``output`` of a call), or a ``computer_screenshot``;
  its source is the string ``image_url``. A data URL goes where that string stood.
* An image named by ``file_id`` is refused: the engine's files are nothing a policy has seen. ``input_file`` is
  forwarded, by address (``file_url``) only where media that the engine fetches are.
* ``background`` is refused: the answer would have to be fetched later, from a path and a budget that are not there.
* ``previous_input_messages`` (vLLM) is refused: it would carry messages past every limit. They belong in ``input``.
* ``previous_response_id`` and item references are forwarded. What the engine adds for them is in no estimate, and
  nothing is learnt from what it counts then.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from gateway.dialects import fields
from gateway.dialects.answers import is_text, number, objects
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.parts import PartReader
from gateway.dialects.text import json_bytes
from gateway.dialects.usage import count, usages
from gateway.errors import GatewayError, InvalidRequest
from gateway.types import (
    Answer,
    AnswerText,
    Call,
    Json,
    JsonObject,
    LongString,
    OtherMedium,
    Pointer,
    RequestId,
    Usage,
    dotted,
    foreign,
)

_IMAGE_TYPES = frozenset({"input_image", "image_url", "computer_screenshot"})
_PART_TYPES = _IMAGE_TYPES | foreign.PART_TYPES
# Members of an item that templates print besides its content: of calls, of what they return, of custom tools.
_ITEM_TEXTS = ("name", "arguments", "input")
# Members of an item that are a string, or a list of parts, or (a screenshot) one part.
_ITEM_CONTENTS = ("content", "output", "summary")
# Of an answer: parts that hold text, events that bring a piece, and those that repeat it whole, with the member.
_PARTS = ("output_text", "reasoning_text")
_DELTAS = ("response.output_text.delta", "response.reasoning_text.delta", "response.function_call_arguments.delta")
_DONE = {
    "response.output_text.done": "text",
    "response.reasoning_text.done": "text",
    "response.function_call_arguments.done": "arguments",
}
_PART_DONE = ("response.content_part.done", "response.reasoning_part.done")
_CHAT = OpenAIChat()


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """``POST /v1/responses``."""

    name: str = "openai_responses"
    paths: tuple[str, ...] = ("/v1/responses",)
    counts_only: bool = False
    keeps_responses: bool = True

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``input.1.content.0.image_url``)."""
        if fields.flag(tree, "background"):
            raise InvalidRequest("Background responses are not offered; leave it out or stream.", part="background")
        if tree.get("previous_input_messages"):
            raise InvalidRequest("Earlier messages belong in input.", part="previous_input_messages")
        reader = PartReader(_IMAGE_TYPES, one_form=False, takes_ids=True)
        items, is_continued = _read_input(reader, tree.get("input"))
        if tree.get("instructions"):
            items += 1
            reader.text(tree["instructions"])
        if tree.get("tools"):
            reader.text_bytes += json_bytes(tree["tools"])
        return Call(
            model=fields.model(tree),
            stream=fields.flag(tree, "stream"),
            wants_usage=True,
            output_limit_tokens=fields.count(tree, "max_output_tokens", at_least=0),
            output_limit_field="max_output_tokens",
            prompt_field="input",
            images=tuple(reader.images),
            text_bytes=reader.text_bytes,
            message_count=items,
            user=fields.string(tree.get("user")),
            task=fields.task(tree.get("metadata")),
            other_media=tuple(reader.other_media),
            has_tools=bool(tree.get("tools")),
            foreign_fields=(*((key,) for key in fields.engine_fields(tree, foreign.BODY)), *reader.foreign_fields),
            continues=fields.string(tree.get("previous_response_id")),
            is_continued=is_continued or bool(tree.get("previous_response_id") or tree.get("conversation")),
        )

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, the same as in chat."""
        return _CHAT.error_body(error, request_id)

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """The event ``error``: flat as in OpenAI's reference, and with the envelope on which its SDKs raise.

        The gateway does not count the stream's events, so the number that the event has to carry is 0.
        """
        envelope = json.loads(self.error_body(error, request_id))
        flat = {key: envelope["error"][key] for key in ("code", "message", "param")}
        event = {"type": "error", **flat, "sequence_number": 0, **envelope}
        return b"event: error\ndata: " + json.dumps(event).encode() + b"\n\n"

    def answer(self, tree: JsonObject) -> Answer:
        """What the response says, thinks and calls; in a stream its deltas, and later events that repeat them whole."""
        texts = [*_output_texts(tree, ("output",)), *_output_texts(tree, ("response", "output"))]
        item = tree.get("item")
        texts += _item_texts(item, ("item",)) if isinstance(item, dict) else []
        kind = fields.string(tree.get("type")) or ""
        channel = f"{number(tree.get('output_index'))}.{number(tree.get('content_index'))}"
        ended: tuple[str, ...] = ()
        whole = _DONE.get(kind)
        if kind in _DELTAS and is_text(tree.get("delta")):
            texts.append(AnswerText(("delta",), channel, whole=False))
        elif whole is not None and is_text(tree.get(whole)):
            texts.append(AnswerText((whole,), channel, whole=True))
            ended = (channel,)
        part = tree.get("part")
        if kind in _PART_DONE and isinstance(part, dict) and is_text(part.get("text")):
            texts.append(AnswerText(("part", "text"), channel, whole=True))
        return Answer(tuple(texts), ended)

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (both forms spell it alike)
        """``usage`` of the response, or of the response inside the last event."""
        for reported in usages(tail):
            prompt_tokens = count(reported, "input_tokens")
            if prompt_tokens is not None:
                cached = count(reported.get("input_tokens_details"), "cached_tokens")
                return Usage(prompt_tokens, count(reported, "output_tokens") or 0, cached)
        return None


def _output_texts(tree: JsonObject, pointer: Pointer) -> list[AnswerText]:
    """The texts of all items of a list."""
    return [text for at, item in objects(tree, pointer) for text in _item_texts(item, at)]


def _item_texts(item: JsonObject, at: Pointer) -> list[AnswerText]:
    texts = _part_texts(item, ("content",), at)
    if item.get("type") == "function_call" and is_text(item.get("arguments")):
        texts.append(AnswerText((*at, "arguments"), "", whole=True))
    return texts


def _part_texts(holder: JsonObject, pointer: Pointer, above: Pointer = ()) -> list[AnswerText]:
    """The texts of a list of parts; ``above`` is where their holder stands."""
    return [
        AnswerText((*above, *at, "text"), "", whole=True)
        for at, part in objects(holder, pointer)
        if part.get("type") in _PARTS and is_text(part.get("text"))
    ]


def _read_input(reader: PartReader, given: Json) -> tuple[int, bool]:
    """How many messages the input makes, and whether it refers to what only the engine has."""
    if isinstance(given, str | LongString):
        reader.text(given)
        return 1, False
    if not isinstance(given, list):
        raise InvalidRequest("A string or a list of items is expected.", part="input")
    is_continued = False
    for index, item in enumerate(given):
        if not isinstance(item, dict):
            raise InvalidRequest("An item is an object.", part=f"input.{index}")
        is_continued = is_continued or item.get("type") == "item_reference"
        _read_item(reader, index, item)
    return len(given), is_continued


def _read_item(reader: PartReader, index: int, item: JsonObject) -> None:
    pointer: Pointer = ("input", index)
    _check_part(reader, pointer, item)
    # A part where an item should be: whatever the engine makes of it, it is read.
    if fields.string(item.get("type")) in _PART_TYPES:
        reader.part(pointer, item)
        return
    for key in _ITEM_TEXTS:
        if key in item:
            reader.text(item[key])
    for key in _ITEM_CONTENTS:
        content = item.get(key)
        for at, part in _parts_of((*pointer, key), content):
            _check_part(reader, at, part)
        if isinstance(content, dict):
            reader.part((*pointer, key), content)
        else:
            reader.content((*pointer, key), content)


def _parts_of(pointer: Pointer, content: Json) -> list[tuple[Pointer, Json]]:
    if isinstance(content, list):
        return [((*pointer, index), part) for index, part in enumerate(content)]
    return [(pointer, content)]


def _check_part(reader: PartReader, pointer: Pointer, part: Json) -> None:
    """Files: refused as images, noted as files. Raises InvalidRequest."""
    if not isinstance(part, dict):
        return
    kind = fields.string(part.get("type"))
    if kind in _IMAGE_TYPES and part.get("file_id") is not None:
        message = "Images that an engine has stored are not accepted; send the image as image_url."
        raise InvalidRequest(message, part=dotted((*pointer, "file_id")))
    if kind == "input_file":
        reader.other_media.append(OtherMedium(dotted(pointer), is_inline=part.get("file_url") is None))
