"""SGLang's own ``/generate``: a prompt as text or ids, media beside it, one or many at a time.

Decided here: what of a request is counted, how errors are spelt, where usage stands. Not decided here: shapes of media
(``natives``), whether a field is right (the engine's to say; it is forwarded as it came).

* ``text`` is a prompt or a list of them, ``input_ids`` the same as tokens; ``sampling_params`` one object, or one for
  each prompt. Without ``max_new_tokens`` SGLang makes 128 tokens, whatever a policy reserves elsewhere.
* The text is the whole prompt: no template is laid around it, and it says itself where its images go.
* Usage stands in ``meta_info`` of every answer, and in a stream of every event, of which the last counts.

Source: SGLang 0.5.23 ``managers/io_struct.py`` (GenerateReqInput), ``sampling/sampling_params.py``,
``entrypoints/http_server.py`` (generate_request).
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.dialects import fields
from gateway.dialects.answers import is_text
from gateway.dialects.inputs import InputReader
from gateway.dialects.natives import read_media
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.usage import count, objects_named
from gateway.errors import GatewayError, InvalidRequest
from gateway.types import Answer, AnswerText, Call, Json, JsonObject, RequestId, Usage, foreign

DEFAULT_NEW_TOKENS = 128
HASHES_FIELD = "mm_hashes"
_CHAT = OpenAIChat()


@dataclass(frozen=True, slots=True)
class SglangGenerate:
    """``POST /generate``."""

    name: str = "sglang_generate"
    paths: tuple[str, ...] = ("/generate",)
    counts_only: bool = False
    keeps_responses: bool = False

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``image_data.0``)."""
        reader = InputReader()
        reader.read(("text",), tree.get("text"))
        reader.read(("input_ids",), tree.get("input_ids"))
        beside = read_media(reader, tree)
        prompts = max(1, reader.prompts)
        limit, choices = _sampling(tree.get("sampling_params"), prompts)
        return Call(
            model=fields.model(tree),
            stream=fields.flag(tree, "stream"),
            wants_usage=True,
            output_limit_tokens=limit,
            output_limit_field="sampling_params.max_new_tokens",
            images=tuple(reader.parts.images),
            text_bytes=reader.parts.text_bytes,
            message_count=0,
            choices=choices,
            other_media=tuple(reader.parts.other_media),
            foreign_fields=(*((key,) for key in fields.engine_fields(tree, foreign.NATIVE_BODY)), *beside),
            prompt_field="text" if tree.get("text") is not None else "input_ids",
            prompts=prompts,
            token_ids=reader.token_ids,
            is_chat=False,
            generates=False,
            # One hash for each image of one prompt; how those of several would have to stand is not documented.
            hashes_field=None if prompts > 1 or reader.parts.other_media else HASHES_FIELD,
        )

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, the same as in chat: SGLang's on this path has fewer members of it."""
        return _CHAT.error_body(error, request_id)

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """One event with the envelope, as SGLang tells an error after its first token."""
        return _CHAT.stream_error(error, request_id)

    def answer(self, tree: JsonObject) -> Answer:
        """``text``, which in a stream holds all that was said so far."""
        return Answer((AnswerText(("text",), "", whole=True),) if is_text(tree.get("text")) else ())

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:
        """Of one answer, or of a stream its last event; of several answers their sum, if all are among these bytes."""
        told = [meta for meta in objects_named(tail, "meta_info") if count(meta, "prompt_tokens") is not None]
        if not told:
            return None
        if streamed:
            newest: dict[object, dict[str, object]] = {}
            for meta in told:  # the last one first
                newest.setdefault(meta.get("id"), meta)
            told = list(newest.values())
        cached = [count(meta, "cached_tokens") for meta in told]
        return Usage(
            sum(count(meta, "prompt_tokens") or 0 for meta in told),
            sum(count(meta, "completion_tokens") or 0 for meta in told),
            None if None in cached else sum(each or 0 for each in cached),
        )


def _sampling(given: Json, prompts: int) -> tuple[int, int]:
    """The largest output limit, and how many answers are made of all prompts. Raises InvalidRequest."""
    each = given if isinstance(given, list) else [given]
    limits: list[int] = []
    answers: list[int] = []
    for index, params in enumerate(each):
        if params is not None and not isinstance(params, dict):
            part = f"sampling_params.{index}" if isinstance(given, list) else "sampling_params"
            raise InvalidRequest("Sampling parameters are an object.", part=part)
        told: JsonObject = params or {}
        asked = fields.count(told, "max_new_tokens", at_least=0)
        limits.append(DEFAULT_NEW_TOKENS if asked is None else asked)
        answers.append(fields.count(told, "n", at_least=1) or 1)
    if not each:
        return DEFAULT_NEW_TOKENS, prompts
    return max(limits), max(answers) * prompts
