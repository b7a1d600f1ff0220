"""APIs that turn a prompt into tokens and back: ``tokenize`` of text or of a conversation with images, ``detokenize``.

Decided here: what of a request is counted; an engine decodes and processes every image of a conversation to count its
tokens, so they go the way of any other image. Not decided here: the count, which is the engine's.
Sources: vLLM 0.32.0 ``entrypoints/serve/tokenize/protocol.py``, SGLang 0.5.23 ``entrypoints/openai/protocol.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.dialects.inputs import InputReader
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.pooling import pooled_call
from gateway.dialects.text import json_bytes
from gateway.errors import GatewayError, InvalidRequest
from gateway.types import Answer, Call, JsonObject, RequestId, Usage

_CHAT = OpenAIChat()


@dataclass(frozen=True, slots=True)
class Tokenizing:
    """``POST /tokenize`` and ``POST /detokenize``, each with its path below ``/v1``."""

    name: str = "tokenizing"
    paths: tuple[str, ...] = ("/tokenize", "/v1/tokenize", "/detokenize", "/v1/detokenize")
    counts_only: bool = False
    keeps_responses: bool = False

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``messages.1.content.0.image_url``)."""
        reader = InputReader()
        messages = tree.get("messages")
        if messages is not None and not isinstance(messages, list):
            raise InvalidRequest("A list of messages is expected.", part="messages")
        reader.read(("messages",), messages)
        reader.read(("prompt",), tree.get("prompt"))
        if tree.get("tools"):
            reader.parts.text_bytes += json_bytes(tree["tools"])
        return pooled_call(tree, reader, "messages" if messages is not None else "prompt")

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, the same as in chat."""
        return _CHAT.error_body(error, request_id)

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """Never met: nothing is streamed here."""
        return _CHAT.stream_error(error, request_id)

    def answer(self, tree: JsonObject) -> Answer:  # noqa: ARG002 (the same for every answer)
        """Tokens, and the caller's own text."""
        return Answer()

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (there is none)
        """An engine uses up nothing that it reports."""
        return None
