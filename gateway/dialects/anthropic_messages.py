"""Anthropic's Messages and its token count, as vLLM and SGLang speak them.

Decided here: where images and text stand in a request, what cannot be answered for and is refused, and how errors are
spelt: every error on these paths, whoever caused it, has Anthropic's envelope. Not decided here: whether a field we do
not read is right (the engine's to say; it is forwarded as it came).

* An image is a block of type ``image``, at the top of a message, in a ``tool_result`` or in a document made of blocks.
  Its source is ``base64`` (delivered as bare base64 beside its true ``media_type``) or ``url``; what is
  fetched or changed becomes a base64 source, a data URL that conforms stays.
* A ``file`` source is refused: the engine's files are nothing a policy has seen.
* All else of a block (``cache_control``, ids, citations) stays as it came.
* A count makes no output, so it reserves none.

Source of envelope, names and fields: Anthropic's API reference (errors, messages, streaming), version 2023-06-01.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from gateway.dialects import fields
from gateway.dialects.answers import is_text, number, objects
from gateway.dialects.text import json_bytes, text_bytes
from gateway.dialects.usage import count, usages
from gateway.errors import GatewayError, InvalidRequest
from gateway.types import (
    Answer,
    AnswerText,
    Call,
    ImageForm,
    ImagePart,
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

_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# Members of a block that hold text, whatever the block's type says.
_TEXT_MEMBERS = ("text", "thinking", "name", "title", "context")
# Blocks inside blocks: an image in a document in a tool result is three deep.
_MAX_NESTING = 6
_INPUT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """``POST /v1/messages``; with ``counts_only`` its sibling that only counts the prompt."""

    name: str = "anthropic_messages"
    paths: tuple[str, ...] = ("/v1/messages",)
    counts_only: bool = False
    keeps_responses: bool = False

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``messages.1.content.0.source.data``)."""
        blocks = _Blocks()
        messages = tree.get("messages")
        if not isinstance(messages, list):
            raise InvalidRequest("A list of messages is expected.", part="messages")
        system = tree.get("system")
        blocks.content(("system",), system)
        for index, message in enumerate(messages):
            if not isinstance(message, dict):
                raise InvalidRequest("A message is an object.", part=f"messages.{index}")
            blocks.content(("messages", index, "content"), message.get("content"))
        if tree.get("tools"):
            blocks.text_bytes += json_bytes(tree["tools"])
        metadata = tree.get("metadata")
        return Call(
            model=fields.model(tree),
            stream=not self.counts_only and fields.flag(tree, "stream"),
            wants_usage=True,
            output_limit_tokens=0 if self.counts_only else fields.count(tree, "max_tokens", at_least=0),
            images=tuple(blocks.images),
            text_bytes=blocks.text_bytes,
            message_count=len(messages) + bool(system),
            user=fields.string(metadata.get("user_id")) if isinstance(metadata, dict) else None,
            task=fields.task(metadata),
            other_media=tuple(blocks.other_media),
            has_tools=bool(tree.get("tools")),
            generates=not self.counts_only,
            foreign_fields=(*((key,) for key in fields.engine_fields(tree, foreign.BODY)), *blocks.foreign_fields),
        )

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """Anthropic's envelope. The type is the status's; the gateway's own code travels in a header."""
        status = error.told_status
        kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        message = f"{error.part}: {error.message}" if error.part else error.message
        return json.dumps(
            {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}
        ).encode()

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """The event ``error``, on which the SDKs raise."""
        return b"event: error\ndata: " + self.error_body(error, request_id) + b"\n\n"

    def answer(self, tree: JsonObject) -> Answer:
        """What each content block says, thinks and calls; in a stream its deltas, until the block stops."""
        texts: list[AnswerText] = []
        for pointer, block in objects(tree, ("content",)):
            kind = block.get("type")
            if kind in ("text", "thinking") and is_text(block.get(str(kind))):
                texts.append(AnswerText((*pointer, str(kind)), "", whole=True))
            elif kind == "tool_use" and isinstance(block.get("input"), dict):
                texts.append(AnswerText((*pointer, "input"), "", whole=True, is_json=True))
        channel = str(number(tree.get("index")))
        delta = tree.get("delta")
        if tree.get("type") == "content_block_delta" and isinstance(delta, dict):
            texts += [
                AnswerText(("delta", name), channel, whole=False)
                for name in ("text", "thinking", "partial_json")
                if is_text(delta.get(name))
            ]
        ended = (channel,) if tree.get("type") == "content_block_stop" else ()
        return Answer(tuple(texts), ended)

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (both forms spell it alike)
        """The prompt is what was read, read from a cache and written to one, each counted apart.

        A stream reports twice. The last report counts; where it tells of the output only, as it may, the prompt is the
        first one's, if that is still among the last bytes.
        """
        completion_tokens: int | None = None
        for reported in usages(tail):
            if completion_tokens is None:
                completion_tokens = count(reported, "output_tokens") or 0
            parts = [count(reported, name) or 0 for name in _INPUT_COUNTS]
            if any(parts):
                return Usage(sum(parts), completion_tokens, count(reported, "cache_read_input_tokens"))
        return None


@dataclass(slots=True)
class _Blocks:
    """What has been found in the blocks so far."""

    images: list[ImagePart] = field(default_factory=list)
    text_bytes: int = 0
    other_media: list[OtherMedium] = field(default_factory=list)
    foreign_fields: list[Pointer] = field(default_factory=list)

    def content(self, pointer: Pointer, content: Json, nesting: int = 0) -> None:
        """A string or a list of blocks, which may hold blocks. Raises InvalidRequest."""
        if content is None or isinstance(content, str | LongString):
            self.text_bytes += text_bytes(content)
            return
        if not isinstance(content, list):
            raise InvalidRequest("Content is a string or a list of blocks.", part=dotted(pointer))
        if nesting > _MAX_NESTING:
            raise InvalidRequest("Blocks are nested too deeply.", part=dotted(pointer))
        for index, block in enumerate(content):
            self._block((*pointer, index), block, nesting)

    def _block(self, pointer: Pointer, block: Json, nesting: int) -> None:
        if isinstance(block, str | LongString):
            self.text_bytes += text_bytes(block)
            return
        if not isinstance(block, dict):
            raise InvalidRequest("A block is an object.", part=dotted(pointer))
        kind = block.get("type")
        if kind is not None and not isinstance(kind, str | LongString):
            raise InvalidRequest("A block's type is a string.", part=dotted((*pointer, "type")))
        if kind in foreign.PART_TYPES:
            raise InvalidRequest("Blocks that carry an engine's own tensors are not accepted.", part=dotted(pointer))
        beside = fields.engine_fields(block, foreign.PART)
        self.foreign_fields += [(*pointer, key) for key in beside]
        if kind == "image":
            self._image(pointer, block.get("source"), tuple(beside))
            return
        self.text_bytes += sum(text_bytes(block[key]) for key in _TEXT_MEMBERS if key in block)
        if block.get("input"):
            self.text_bytes += json_bytes(block["input"])
        inner = block.get("content")
        if isinstance(inner, dict):  # what a server's tool returned: an error, or a result of its own shape
            self.text_bytes += json_bytes(inner)
        else:
            self.content((*pointer, "content"), inner, nesting + 1)
        if kind == "document":
            self._document((*pointer, "source"), block.get("source"), nesting)

    def _document(self, pointer: Pointer, source: Json, nesting: int) -> None:
        if not isinstance(source, dict):
            raise InvalidRequest("A document has a source.", part=dotted(pointer))
        kind = source.get("type")
        if kind == "text":
            self.text_bytes += text_bytes(source.get("data"))
        elif kind == "content":
            self.content((*pointer, "content"), source.get("content"), nesting + 1)
        else:
            self.other_media.append(OtherMedium(dotted(pointer), is_inline=kind != "url"))

    def _image(self, pointer: Pointer, source: Json, beside: tuple[str, ...]) -> None:
        holder = (*pointer, "source")
        kind = source.get("type") if isinstance(source, dict) else None
        if not isinstance(source, dict) or kind not in ("base64", "url", "file"):
            raise InvalidRequest("The image has no source of type base64 or url.", part=dotted(holder))
        if kind == "file":
            message = "Images that an engine has stored are not accepted; send the image as base64 or url."
            raise InvalidRequest(message, part=dotted(holder))
        member = "data" if kind == "base64" else "url"
        text = source.get(member)
        if not isinstance(text, str | LongString) or not text:
            raise InvalidRequest("The image's source is empty.", part=dotted((*holder, member)))
        self.images.append(
            ImagePart(
                pointer=(*holder, member),
                part=pointer,
                source=text,
                form=ImageForm.BASE64 if kind == "base64" else ImageForm.BASE64_SOURCE,
                media_type=fields.string(source.get("media_type")),
                foreign_fields=beside,
            )
        )
