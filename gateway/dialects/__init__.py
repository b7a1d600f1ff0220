"""One file per chat API: what its requests mean, how it spells errors, where it reports usage.

Decided here: where images, texts and limits stand in a body (stage *read*). Not decided here: what is done with them. A
new dialect is one file with a class of this shape and one line in ``DIALECTS``.
"""

from __future__ import annotations

from typing import Protocol

from gateway.dialects.anthropic_messages import AnthropicMessages
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_completions import OpenAICompletions
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.dialects.pooling import Pooling
from gateway.dialects.scoring import Scoring
from gateway.dialects.sglang_generate import SglangGenerate
from gateway.dialects.tokenizing import Tokenizing
from gateway.errors import GatewayError
from gateway.types import Answer, Call, EngineKind, JsonObject, RequestId, Usage


class Dialect(Protocol):
    """One chat API. Bodies come parsed and go as bytes; nothing here sends anything."""

    @property
    def name(self) -> str: ...
    @property
    def paths(self) -> tuple[str, ...]:
        """The request paths that speak this dialect."""
        ...

    @property
    def counts_only(self) -> bool:
        """Whether the answer is the number of the prompt's tokens, which the gateway can give too."""
        ...

    @property
    def keeps_responses(self) -> bool:
        """Whether the engine keeps its answers, for requests that name them."""
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
    OpenAICompletions(),
    Pooling(),
    Scoring(),
    SglangGenerate(),
    Tokenizing(),
)

_ALL = frozenset(EngineKind)
_VLLM = frozenset({EngineKind.VLLM, EngineKind.GENERIC})
_SGLANG = frozenset({EngineKind.SGLANG, EngineKind.GENERIC})
# Paths that only one of the engines has, by the routes of vLLM 0.32.0 and SGLang 0.5.23. What is neither may have any.
_ENGINES_OF = {
    "/generate": _SGLANG,
    "/encode": _SGLANG,
    "/v1/tokenize": _SGLANG,
    "/v1/detokenize": _SGLANG,
    "/v1/classify": _SGLANG,
    "/pooling": _VLLM,
    "/score": _VLLM,
    "/rerank": _VLLM,
    "/v2/rerank": _VLLM,
    "/v2/embed": _VLLM,
    "/v1/audio/translations": _VLLM,
}


def engines_of(path: str) -> frozenset[EngineKind]:
    """The kinds of engine that may have this path."""
    return _ENGINES_OF.get(path, _ALL)


def dialect_of(path: str) -> Dialect | None:
    """The dialect that a path speaks; ``None`` for every path that is no chat API we read."""
    return next((dialect for dialect in DIALECTS if path in dialect.paths), None)
