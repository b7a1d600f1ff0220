"""APIs that compare inputs: score and rerank, as vLLM and SGLang speak them.

Decided here: which members are compared, and how often each is read. Not decided here: the shapes of an input
(``inputs``), whether a field is right (the engine's to say; it is forwarded as it came).

* A score has two sides, under one of several pairs of names; one input on the first side is compared with each on the
  second, and its text counts as often. A rerank is a score of one ``query`` against ``documents``.
* Images in a side are counted once: an engine encodes each of them once.

Sources: vLLM 0.32.0 ``entrypoints/pooling/scoring/protocol.py``, SGLang 0.5.23 ``entrypoints/openai/protocol.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.dialects.inputs import InputReader
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.pooling import pooled_call
from gateway.dialects.usage import last_usage
from gateway.errors import GatewayError
from gateway.types import Answer, Call, JsonObject, RequestId, Usage

_CHAT = OpenAIChat()
# The first side by its names, then the second.
_SIDES = (("text_1", "data_1", "queries", "query"), ("text_2", "data_2", "documents", "items"))


@dataclass(frozen=True, slots=True)
class Scoring:
    """``POST /v1/score``, ``POST /v1/rerank`` and their other paths; counted with embeddings."""

    name: str = "pooling"
    paths: tuple[str, ...] = ("/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank")
    counts_only: bool = False
    keeps_responses: bool = False

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``documents.1.content.0.image_url``)."""
        reader = InputReader()
        sides: list[tuple[int, int, int]] = []
        for names in _SIDES:
            before = reader.prompts, reader.parts.text_bytes, reader.token_ids
            for name in names:
                reader.read((name,), tree.get(name))
            after = reader.prompts, reader.parts.text_bytes, reader.token_ids
            sides.append((after[0] - before[0], after[1] - before[1], after[2] - before[2]))
        (first, text_bytes, ids), (second, _, _) = sides
        again = max(0, second - 1) if first == 1 else 0
        call = pooled_call(tree, reader, "documents" if tree.get("documents") is not None else "text_2")
        return replace(call, text_bytes=call.text_bytes + again * text_bytes, token_ids=call.token_ids + again * ids)

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, the same as in chat: vLLM's on all these paths."""
        return _CHAT.error_body(error, request_id)

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """Never met: nothing is streamed here."""
        return _CHAT.stream_error(error, request_id)

    def answer(self, tree: JsonObject) -> Answer:  # noqa: ARG002 (the same for every answer)
        """Numbers, and the caller's own texts."""
        return Answer()

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (nothing is streamed)
        """``usage``, where it is among the last bytes: a rerank tells it before its results."""
        return last_usage(tail)
