"""OpenAI's Chat Completions, as vLLM and SGLang speak it.

Decided here: where images and text stand in a request, which values are too misshapen to forward, and how errors are
spelt. Not decided here: whether a field we do not read is right (the engine's to say; it is forwarded as it came).

Rules where the engines leave room:

* an image is a part of type ``image_url`` or ``input_image``, or a part without type that has ``image_url``; its source
  is ``image_url.url`` or ``image_url`` itself. All are delivered in the one form that every engine takes;
* a bare string in a content array is text, as in vLLM;
* a missing, null or empty source, and a part whose type carries engine tensors, is refused and named;
* of ``max_tokens`` and ``max_completion_tokens`` the larger counts, since engines differ in which they obey;
* null for an optional field is the same as its absence.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from gateway.dialects import foreign
from gateway.dialects.text import json_bytes, text_bytes
from gateway.dialects.usage import last_usage
from gateway.errors import GatewayError, InvalidRequest
from gateway.types import Call, ImagePart, Json, JsonObject, LongString, OtherMedium, Pointer, RequestId, Usage, dotted

_IMAGE_TYPES = frozenset({"image_url", "input_image"})
_OTHER_MEDIA = ("video_url", "audio_url", "input_audio", "file")
# Members of a part that hold text, whatever the part's type says.
_TEXT_MEMBERS = ("text", "refusal", "thinking")
# Counts above this mean the same here: more than any engine grants. What is forwarded is the client's own spelling.
_MOST_COUNTED = 1_000_000_000
# Members of a message that templates print besides its content.
_MESSAGE_TEXTS = ("name", "reasoning", "reasoning_content", "refusal")


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """``POST /v1/chat/completions``."""

    name: str = "openai_chat"
    paths: tuple[str, ...] = ("/v1/chat/completions",)
    error_content_type: str = "application/json"

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``messages.1.content.0.image_url``)."""
        reading = _Reading()
        messages = tree.get("messages")
        if not isinstance(messages, list):
            raise InvalidRequest("A list of messages is expected.", part="messages")
        for index, message in enumerate(messages):
            reading.message(index, message)
        reading.text_bytes += sum(json_bytes(tree[key]) for key in ("tools", "functions") if tree.get(key))
        stream = _flag(tree, "stream")
        options = tree.get("stream_options")
        wants_usage = not stream or (isinstance(options, dict) and options.get("include_usage") is True)
        engine_fields = [(key,) for key in tree if key in foreign.BODY and tree[key] is not None]
        return Call(
            model=_model(tree),
            stream=stream,
            wants_usage=wants_usage,
            output_limit_tokens=_output_limit(tree),
            images=tuple(reading.images),
            text_bytes=reading.text_bytes,
            message_count=len(messages),
            choices=_count(tree, "n", at_least=1) or 1,
            user=_string(tree.get("user")),
            task=_task(tree.get("metadata")),
            other_media=tuple(reading.other_media),
            foreign_fields=(*engine_fields, *reading.foreign_fields),
        )

    def error_body(self, error: GatewayError, _request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, which its SDKs turn into exceptions by status. The id travels in a header."""
        message = f"{error.part}: {error.message}" if error.part else error.message
        fields = {"message": message, "type": error.openai_type, "param": error.part, "code": error.code}
        return json.dumps({"error": fields}).encode()

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """One event with the envelope: the SDKs raise on an event that has ``error``."""
        return b"data: " + self.error_body(error, request_id) + b"\n\n"

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (both forms spell it alike)
        """``usage`` of the completion, or of the last chunk that has one."""
        return last_usage(tail)


@dataclass(slots=True)
class _Reading:
    """What has been found in the messages so far."""

    images: list[ImagePart] = field(default_factory=list)
    text_bytes: int = 0
    other_media: list[OtherMedium] = field(default_factory=list)
    foreign_fields: list[Pointer] = field(default_factory=list)

    def message(self, index: int, message: Json) -> None:
        if not isinstance(message, dict):
            raise InvalidRequest("A message is an object.", part=f"messages.{index}")
        content = message.get("content")
        if isinstance(content, list):
            for part_index, part in enumerate(content):
                self._part(index, ("messages", index, "content", part_index), part)
        elif content is None or isinstance(content, str | LongString):
            self.text_bytes += text_bytes(content)
        else:
            raise InvalidRequest("Content is a string or a list of parts.", part=f"messages.{index}.content")
        for key in _MESSAGE_TEXTS:
            if key in message:
                self.text_bytes += text_bytes(message[key])
        if message.get("tool_calls"):
            self.text_bytes += _tool_call_bytes(message["tool_calls"])

    def _part(self, message_index: int, pointer: Pointer, part: Json) -> None:
        if isinstance(part, str | LongString):
            self.text_bytes += text_bytes(part)
            return
        if not isinstance(part, dict):
            raise InvalidRequest("A part is an object or a string.", part=dotted(pointer))
        kind = part.get("type")
        if kind is not None and not isinstance(kind, str | LongString):
            raise InvalidRequest("A part's type is a string.", part=dotted((*pointer, "type")))
        if kind in foreign.PART_TYPES or (kind is None and not foreign.PART_TYPES.isdisjoint(part)):
            raise InvalidRequest("Parts that carry an engine's own tensors are not accepted.", part=dotted(pointer))
        if kind in _IMAGE_TYPES or (kind is None and "image_url" in part):
            self._image(message_index, pointer, part)
            return
        self.foreign_fields += [(*pointer, key) for key in _engine_fields(part, foreign.PART)]
        for key in _TEXT_MEMBERS:
            if key in part:
                self.text_bytes += text_bytes(part[key])
        for key in _OTHER_MEDIA:
            if kind == key or (kind is None and key in part):
                self.other_media.append(OtherMedium(dotted((*pointer, key)), _is_inline(part.get(key))))
                self._medium(pointer, key, part.get(key))

    def _image(self, message_index: int, pointer: Pointer, part: JsonObject) -> None:
        holder = (*pointer, "image_url")
        value = part.get("image_url")
        beside = _engine_fields(part, foreign.PART)
        self.foreign_fields += [(*pointer, key) for key in beside]
        inside = self._medium(pointer, "image_url", value)
        wrap = not isinstance(value, dict)
        source = value.get("url") if isinstance(value, dict) else value
        if not isinstance(source, str | LongString) or not source:
            raise InvalidRequest(
                "The image has no URL; a data URL or an http(s) address is expected.", part=dotted(holder)
            )
        detail = value.get("detail") if isinstance(value, dict) else part.get("detail")
        self.images.append(
            ImagePart(
                pointer=holder if wrap else (*holder, "url"),
                part=pointer,
                source=source,
                message_index=message_index,
                detail=_string(detail),
                wrap=wrap,
                retype=part.get("type") != "image_url",
                foreign_fields=(*beside, *inside),
            )
        )

    def _medium(self, pointer: Pointer, key: str, value: Json) -> list[str]:
        """Note the engine's fields inside one medium; returns their names as seen from the part."""
        if not isinstance(value, dict):
            return []
        names = _engine_fields(value, foreign.MEDIUM)
        self.foreign_fields += [(*pointer, key, name) for name in names]
        return [f"{key}.{name}" for name in names]


def _is_inline(medium: Json) -> bool:
    """Whether a medium brings its own bytes: a data URL, or members that hold base64. Anything else is an address."""
    source = medium.get("url") if isinstance(medium, dict) else medium
    if isinstance(medium, dict) and source is None:
        return True
    if isinstance(source, LongString):
        return source.is_data_url
    return isinstance(source, str) and source[:5].lower() == "data:"


def _engine_fields(members: JsonObject, known: frozenset[str]) -> list[str]:
    return [key for key in members if key in known and members[key] is not None]


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


def _model(tree: JsonObject) -> str | None:
    model = tree.get("model")
    if model is not None and not isinstance(model, str):
        raise InvalidRequest("A model is named by a short string.", part="model")
    return model


def _flag(tree: JsonObject, name: str) -> bool:
    value = tree.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequest("true or false is expected.", part=name)
    return value is True


def _count(tree: JsonObject, name: str, *, at_least: int) -> int | None:
    value = tree.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise InvalidRequest(f"A whole number of at least {at_least} is expected.", part=name)
    return min(value, _MOST_COUNTED)


def _output_limit(tree: JsonObject) -> int | None:
    newer, older = _count(tree, "max_completion_tokens", at_least=0), _count(tree, "max_tokens", at_least=0)
    if newer is None or older is None:
        return older if newer is None else newer
    return max(newer, older)


def _task(metadata: Json) -> str | None:
    """The task a client names where it cannot set a header; ``metadata.task`` is the client's own affair."""
    if metadata is None or not isinstance(metadata, dict):
        return None
    return _string(metadata.get("vlmgw_task"))


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) else None
