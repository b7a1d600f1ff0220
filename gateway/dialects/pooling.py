"""APIs that make numbers of a prompt, not text: embeddings, pooling, classify, and Cohere's embed.

Decided here: where inputs stand in a request, and what cannot be answered for and is refused. Not decided here: the
shapes of an input (``inputs``), whether a field is right (the engine's to say; it is forwarded as it came).

* Inputs are ``input`` or ``messages``, which may hold one conversation or a list of them (vLLM); Cohere's are
  ``texts``, ``images`` and ``inputs``; SGLang's own are ``text``, ``input_ids`` and ``image_data``.
* How long an input may be is the engine's to say: it may cut it (``truncate``) or work through it in pieces.
* ``data`` belongs to a plugin of vLLM's, which may fetch what it names: refused, since no policy has seen it.

Sources: vLLM 0.32.0 ``entrypoints/pooling/{embed,pooling,classify}/protocol.py``, SGLang 0.5.23
``entrypoints/openai/protocol.py`` and ``managers/io_struct.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.dialects import fields
from gateway.dialects.inputs import InputReader
from gateway.dialects.natives import read_media
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.usage import count, last_usage, objects_named
from gateway.errors import GatewayError, InvalidRequest
from gateway.types import Answer, Call, Json, JsonObject, RequestId, Usage, foreign

_CHAT = OpenAIChat()
_INPUTS = ("input", "messages", "texts", "inputs", "text", "input_ids")


@dataclass(frozen=True, slots=True)
class Pooling:
    """``POST /v1/embeddings`` and its like."""

    name: str = "pooling"
    paths: tuple[str, ...] = ("/v1/embeddings", "/pooling", "/classify", "/v1/classify", "/v2/embed", "/encode")
    counts_only: bool = False
    keeps_responses: bool = False

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``input.1.content.0.image_url``)."""
        if tree.get("data") is not None:
            raise InvalidRequest("Input that only a plugin of the engine's understands is not accepted.", part="data")
        reader = InputReader()
        for key in _INPUTS:
            reader.read((key,), tree.get(key))
        _read_images(reader, tree.get("images"))
        beside = read_media(reader, tree)
        return replace(
            pooled_call(tree, reader, "messages" if tree.get("messages") is not None else "input"),
            foreign_fields=(
                *((key,) for key in fields.engine_fields(tree, foreign.BODY - {"input_ids"})),
                *reader.parts.foreign_fields,
                *beside,
            ),
        )

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, the same as in chat: vLLM's on all these paths."""
        return _CHAT.error_body(error, request_id)

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """Never met: nothing is streamed here."""
        return _CHAT.stream_error(error, request_id)

    def answer(self, tree: JsonObject) -> Answer:  # noqa: ARG002 (the same for every answer)
        """Numbers, and no text for people."""
        return Answer()

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (nothing is streamed)
        """``usage``; Cohere's ``meta.billed_units``."""
        found = last_usage(tail)
        if found is not None:
            return found
        for billed in objects_named(tail, "billed_units"):
            tokens = count(billed, "input_tokens")
            if tokens is not None:
                return Usage(tokens, 0, image_tokens=count(billed, "image_tokens"))
        return None


def pooled_call(tree: JsonObject, reader: InputReader, prompt_field: str) -> Call:
    """A call that generates nothing, of the inputs read."""
    return Call(
        model=fields.model(tree),
        stream=False,
        wants_usage=True,
        output_limit_tokens=0,
        images=tuple(reader.parts.images),
        text_bytes=reader.parts.text_bytes,
        message_count=reader.messages,
        user=fields.string(tree.get("user")),
        task=fields.task(tree.get("metadata")),
        other_media=tuple(reader.parts.other_media),
        foreign_fields=(
            *((key,) for key in fields.engine_fields(tree, foreign.BODY)),
            *reader.parts.foreign_fields,
        ),
        prompt_field=prompt_field,
        prompts=None,
        token_ids=reader.token_ids,
        is_chat=False,
        generates=False,
    )


def _read_images(reader: InputReader, images: Json) -> None:
    if images is None:
        return
    if not isinstance(images, list):
        raise InvalidRequest("A list of images is expected.", part="images")
    for index, source in enumerate(images):
        reader.image(("images", index), source)
