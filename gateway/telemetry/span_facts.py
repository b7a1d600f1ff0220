"""One exchange as spans: a server's span for the whole, and below it one for each stage as the record timed it.

Decided here: names, kinds, times and attributes. GenAI names follow OpenTelemetry's semantic conventions for generative
AI (status: development; version 0.66b0 of the Python package, which a test compares), HTTP's and errors' the stable
ones; ``vlmgw.*`` is ours. The whole carries the model's facts and the tokens, once, so that nobody who adds spans up
counts them twice. Never content: what is not a number or a word of ours is a name from configuration, or the model and
path that the access line has too. Not decided here: how spans are sent (`spans`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.record import ExchangeRecord

Attribute = str | bool | int | float

# What asks an engine for an answer; the other dialects count or pass.
_OPERATIONS = {
    "openai_chat": "chat",
    "openai_responses": "chat",
    "anthropic_messages": "chat",
    "openai_completions": "text_completion",
    "sglang_generate": "text_completion",
    "pooling": "embeddings",
}
# Calls to others: of a backend, of an encoder, of a prefill.
_CALLS = frozenset({"forward", "encode", "prefill"})
_FAULTS = frozenset({"backend_failed", "bug"})
# What comes after a stage, for the one that was not ended. *check* is met twice.
_NEXT = {
    "accept": "read", "read": "resolve", "resolve": "check", "fetch": "plan", "plan": "estimate", "estimate": "check",
    "reserve": "decide", "decide": "prepare", "prepare": "splice", "splice": "forward", "encode": "forward",
    "prefill": "forward", "forward": "relay", "relay": "settle",
}  # fmt: skip
# The short way reads, plans and prepares nothing.
_NEXT_UNREAD = {"accept": "reserve", "reserve": "decide", "decide": "forward", "forward": "relay"}


@dataclass(frozen=True, slots=True)
class SpanFacts:
    """One span. ``span_id`` in hex, ``None`` where nobody else knows it; times in ns of the epoch."""

    name: str
    kind: str  # server, client or internal
    start_ns: int
    end_ns: int
    attributes: dict[str, Attribute]
    is_error: bool
    span_id: str | None
    parent_id: str | None


def spans_of(x: ExchangeRecord, ended_at_s: float) -> Iterator[SpanFacts]:
    """The whole first, then its stages. ``ended_at_s``: the wall clock when it ended. Nothing without a trace."""
    trace = x.trace
    if trace is None:
        return
    ended_s = x.started_s if x.ended_s is None else x.ended_s
    end_ns = int(ended_at_s * 1e9)
    start_ns = end_ns - int((ended_s - x.started_s) * 1e9)
    failed = _is_error(x)
    yield SpanFacts(_name(x), "server", start_ns, end_ns, _whole(x, ended_s), failed, trace.span_id, trace.parent_id)
    last_forward = max((place for place, (stage, _) in enumerate(x.stages) if stage == "forward"), default=None)
    at_s = 0.0
    for place, (stage, seconds) in enumerate(x.stages):
        from_ns = start_ns + int(at_s * 1e9)
        at_s += seconds
        own_id = trace.forward_id if place == last_forward else None
        yield _stage(x, stage, from_ns, start_ns + int(at_s * 1e9), own_id)
    open_ns = start_ns + int(at_s * 1e9)
    if (ended_in := _unfinished(x)) is not None and open_ns < end_ns:
        own_id = trace.forward_id if ended_in == "forward" and last_forward is None else None
        yield _stage(x, ended_in, open_ns, end_ns, own_id, is_error=failed)


def _stage(
    x: ExchangeRecord, stage: str, start_ns: int, end_ns: int, own_id: str | None, *, is_error: bool = False
) -> SpanFacts:
    is_call = stage in _CALLS
    attributes: dict[str, Attribute] = {"vlmgw.stage": stage}
    if stage == "forward":
        attributes |= _backend_address(x.backend_url) | _present({"vlmgw.backend": x.backend})
        attributes["http.request.method"] = x.method
        if x.status is not None and x.code is None:
            attributes["http.response.status_code"] = x.status
    if is_error and x.code is not None:
        attributes["error.type"] = x.code
    parent_id = None if x.trace is None else x.trace.span_id
    return SpanFacts(
        stage, "client" if is_call else "internal", start_ns, end_ns, attributes, is_error, own_id, parent_id
    )


def _unfinished(x: ExchangeRecord) -> str | None:
    """The stage in which an exchange ended early: stages are noted when they are over."""
    met = [stage for stage, _ in x.stages]
    if not met:
        return "accept"
    if x.outcome in {"ok", "backend_refused"}:
        return None
    if "read" not in met and (x.dialect not in _OPERATIONS or len(met) > 1):
        return _NEXT_UNREAD.get(met[-1])
    if met[-1] == "check":
        return "fetch" if met.count("check") == 1 else "reserve"
    return _NEXT.get(met[-1])


def _is_error(x: ExchangeRecord) -> bool:
    """Whether the server failed: what a client got wrong is none of its errors (HTTP conventions)."""
    return x.outcome in _FAULTS or (x.status is not None and x.status >= 500)


def _name(x: ExchangeRecord) -> str:
    """Few different names: a model's only once it is known to be served."""
    operation = _OPERATIONS.get(x.dialect)
    if operation is None:
        return f"{x.method} {x.dialect}"
    return f"{operation} {x.model[:128]}" if x.known_model and x.model else operation


def _whole(x: ExchangeRecord, ended_s: float) -> dict[str, Attribute]:
    first_s = x.first_chunk_s if x.first_chunk_s is not None else x.first_byte_s
    asked, usage, estimate = x.asked, x.usage, x.estimate
    attributes = _present(
        {
            "http.request.method": x.method,
            "url.path": x.path[:256],
            "http.response.status_code": x.status,
            "error.type": x.code or (str(x.status) if x.outcome == "backend_refused" else None),
            "gen_ai.operation.name": _OPERATIONS.get(x.dialect),
            "gen_ai.provider.name": x.engine if x.engine in {"vllm", "sglang"} else None,
            "gen_ai.request.model": x.model[:128] if x.model else None,
            "gen_ai.response.model": x.sent_model[:128] if x.sent_model and x.usage is not None else None,
            "gen_ai.request.stream": x.stream if asked is not None else None,
            "gen_ai.request.max_tokens": None if asked is None else asked.output_limit_tokens,
            "gen_ai.request.choice.count": asked.choices if asked is not None and asked.choices > 1 else None,
            "gen_ai.response.time_to_first_chunk": first_s - x.started_s if x.stream and first_s is not None else None,
            "gen_ai.usage.input_tokens": None if usage is None else usage.prompt_tokens,
            "gen_ai.usage.output_tokens": None if usage is None else usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": None if usage is None else usage.cached_tokens,
            "vlmgw.request_id": x.request_id,
            "vlmgw.dialect": x.dialect,
            "vlmgw.outcome": x.outcome,
            "vlmgw.rule": x.rule,
            "vlmgw.tenant": x.tenant,
            "vlmgw.task": x.task,
            "vlmgw.shadow": x.shadow or None,
            "vlmgw.backend": x.backend,
            "vlmgw.decision": x.decision_reason,
            "vlmgw.attempts": x.attempts or None,
            "vlmgw.duration_s": ended_s - x.started_s,
            "vlmgw.request_bytes": x.request_bytes,
            "vlmgw.forwarded_bytes": x.forwarded_bytes,
            "vlmgw.response_bytes": x.response_bytes,
            "vlmgw.estimate.prompt_tokens": None if estimate is None else estimate.prompt_tokens,
        }
    )
    return attributes | _images(x)


def _images(x: ExchangeRecord) -> dict[str, Attribute]:
    count = x.images
    if not count and not x.images_omitted:
        return {}
    facts: dict[str, Attribute | None] = {
        "vlmgw.images.passed": x.images_passed,
        "vlmgw.images.shrunk": x.images_shrunk,
        "vlmgw.images.recoded": x.images_recoded,
        "vlmgw.images.omitted": x.images_omitted,
        "vlmgw.images.bytes_in": x.image_bytes_in,
        "vlmgw.images.bytes_out": x.image_bytes_out,
        "vlmgw.images.tokens_asked": x.image_tokens_original,
        "vlmgw.images.tokens_sent": None if x.estimate is None else x.estimate.image_tokens,
        "vlmgw.images.cache_hits": x.cache_hits,
    }
    return _present(facts)


def _present(facts: dict[str, Attribute | None]) -> dict[str, Attribute]:
    return {name: value for name, value in facts.items() if value is not None}


def _backend_address(url: str | None) -> dict[str, Attribute]:
    """Host and port alone: nothing of a URL that could be a credential."""
    if url is None:
        return {}
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return _present({"server.address": parts.hostname, "server.port": port})
