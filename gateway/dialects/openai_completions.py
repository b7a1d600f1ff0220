"""OpenAI's legacy Completions, as vLLM and SGLang speak them: a text goes on, there are no messages and no images.

Decided here: what of a request is counted. Not decided here: whether a field is right (the engine's to say).

* ``prompt`` is a string, token ids, or a list of either: one completion each, times ``n``.
* ``prompt_embeds`` (tensors) are taken out like every engine-internal field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.dialects import fields
from gateway.dialects.answers import is_text, number, objects
from gateway.dialects.inputs import InputReader
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.usage import last_usage
from gateway.errors import GatewayError
from gateway.types import Answer, AnswerText, Call, JsonObject, RequestId, Usage, foreign

_CHAT = OpenAIChat()


@dataclass(frozen=True, slots=True)
class OpenAICompletions:
    """``POST /v1/completions``."""

    name: str = "openai_completions"
    paths: tuple[str, ...] = ("/v1/completions",)
    counts_only: bool = False
    keeps_responses: bool = False

    def read(self, tree: JsonObject) -> Call:
        """Raises InvalidRequest naming the part (``prompt.1``)."""
        reader = InputReader()
        reader.read(("prompt",), tree.get("prompt"))
        reader.parts.text(tree.get("suffix"))
        stream = fields.flag(tree, "stream")
        options = tree.get("stream_options")
        prompts = max(1, reader.prompts)
        return Call(
            model=fields.model(tree),
            stream=stream,
            wants_usage=not stream or (isinstance(options, dict) and options.get("include_usage") is True),
            output_limit_tokens=fields.count(tree, "max_tokens", at_least=0),
            images=tuple(reader.parts.images),
            text_bytes=reader.parts.text_bytes,
            message_count=0,
            choices=(fields.count(tree, "n", at_least=1) or 1) * prompts,
            user=fields.string(tree.get("user")),
            task=fields.task(tree.get("metadata")),
            other_media=tuple(reader.parts.other_media),
            foreign_fields=tuple((key,) for key in fields.engine_fields(tree, foreign.BODY)),
            prompt_field="prompt",
            prompts=None if tree.get("truncate_prompt_tokens") is not None else prompts,
            token_ids=reader.token_ids,
            is_chat=False,
        )

    def error_body(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """OpenAI's envelope, the same as in chat."""
        return _CHAT.error_body(error, request_id)

    def stream_error(self, error: GatewayError, request_id: RequestId, /) -> bytes:
        """One event with the envelope, the same as in chat."""
        return _CHAT.stream_error(error, request_id)

    def answer(self, tree: JsonObject) -> Answer:
        """The text of each choice, which ends with its ``finish_reason``."""
        ended = [choice for _, choice in objects(tree, ("choices",)) if choice.get("finish_reason") is not None]
        return Answer(tuple(_texts(tree)), tuple(str(number(choice.get("index"))) for choice in ended))

    def usage(self, tail: bytes, *, streamed: bool) -> Usage | None:  # noqa: ARG002 (both forms spell it alike)
        """``usage`` of the completion, or of the last chunk that has one."""
        return last_usage(tail)


def _texts(tree: JsonObject) -> Iterator[AnswerText]:
    for pointer, choice in objects(tree, ("choices",)):
        if is_text(choice.get("text")):
            yield AnswerText((*pointer, "text"), str(number(choice.get("index"))), whole=False)
