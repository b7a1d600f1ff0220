"""One file per chat API: what its requests mean, how it spells errors, where it reports usage.

A new dialect is one file with a class of this shape and one line in ``DIALECTS``.
"""

from __future__ import annotations

from typing import Protocol

from gateway.dialects.anthropic_messages import AnthropicMessages
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.errors import GatewayError
from gateway.types import Answer, Call, JsonObject, RequestId, Usage


class Dialect(Protocol):
    """One chat API. Bodies come parsed and go as bytes; nothing here sends anything."""

    @property
    def name(self) -> str: ...
    @property
    def paths(self) -> tuple[str, ...]:
        """The request paths that speak this dialect."""
        ...

    def read(self, tree: JsonObject) -> Call:
        """What the journey needs to know of a request. Raises InvalidRequest, naming the part."""
        ...

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """The whole body of an error response."""
        ...

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """The last event of a stream that fails after its first byte. No end marker may follow it."""
        ...

    def answer(self, tree: JsonObject) -> Answer:
        """Where text for people stands in a whole response or in one event of a stream; anything odd holds none."""
        ...

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:
        """The usage in the last bytes of a response as they came from the engine, if they hold it."""
        ...


DIALECTS: tuple[Dialect, ...] = (
    OpenAIChat(),
    OpenAIResponses(),
    AnthropicMessages(),
    AnthropicMessages("anthropic_count_tokens", ("/v1/messages/count_tokens",), counts_only=True),
)


def dialect_of(path: str) -> Dialect | None:
    """The dialect that a path speaks; ``None`` for every path that is no chat API we read."""
    return next((dialect for dialect in DIALECTS if path in dialect.paths), None)
