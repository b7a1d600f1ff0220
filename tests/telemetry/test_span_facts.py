"""One exchange as spans: their times, names and attributes, and what never stands in them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import opentelemetry.semconv._incubating.attributes.gen_ai_attributes as gen_ai
import pytest
from opentelemetry.semconv.attributes import error_attributes, http_attributes, server_attributes, url_attributes

from gateway.record import AskedFor, ExchangeRecord, TraceContext
from gateway.telemetry.span_facts import SpanFacts, spans_of
from gateway.types import RequestId, TokenEstimate, Usage

TRACE = TraceContext("ab" * 16, "1" * 16, "2" * 16, "3" * 16, sampled=True)
CHAT = ("accept", "read", "resolve", "check", "fetch", "plan", "estimate", "check", "reserve", "decide", "prepare")
WHOLE = (*CHAT, "splice", "forward", "relay", "settle")


def exchange(*stages: str, **facts: Any) -> ExchangeRecord:
    base: dict[str, Any] = {
        "request_id": RequestId("r1"),
        "dialect": "openai_chat",
        "path": "/v1/chat/completions",
        "started_s": 10.0,
        "ended_s": 10.0 + 0.25 * len(stages),
        "trace": TRACE,
        "stages": [(stage, 0.25) for stage in stages],
    }
    return ExchangeRecord(**(base | facts))


def full() -> ExchangeRecord:
    return exchange(
        *WHOLE, model="alias", sent_model="Qwen/Qwen3-VL-8B", known_model=True, stream=True, tenant="acme", task="ocr",
        backend="a", backend_url="http://user:secret@engine:8000/base", engine="vllm", status=200, first_byte_s=11.0,
        asked=AskedFor(2, (None, "high"), 0, 0, 3, 100, 64, 2, has_tools=False), images_shrunk=2, images_omitted=1,
        image_tokens_original=900, estimate=TokenEstimate(20, 10, 40, 256, 2, 100), usage=Usage(290, 7, 240, 256),
        attempts=1, decision_reason="known_image",
    )  # fmt: skip


def told(x: ExchangeRecord) -> list[SpanFacts]:
    return list(spans_of(x, 1_000.0))


def test_stages_lie_end_to_end_within_the_whole() -> None:
    whole, *stages = told(full())
    assert (whole.name, whole.kind, whole.parent_id, whole.span_id) == ("chat alias", "server", "3" * 16, "1" * 16)
    assert whole.end_ns == 1_000_000_000_000
    assert whole.end_ns - whole.start_ns == 250_000_000 * len(WHOLE)
    assert [span.name for span in stages] == list(WHOLE)
    assert stages[0].start_ns == whole.start_ns
    assert all(one.end_ns == next_one.start_ns for one, next_one in itertools.pairwise(stages))
    assert stages[-1].end_ns == whole.end_ns
    assert {span.parent_id for span in stages} == {whole.span_id}


def test_only_the_call_to_the_backend_is_a_clients_and_has_the_id_that_the_backend_was_told() -> None:
    calls = [span for span in told(full()) if span.kind == "client"]
    assert [(span.name, span.span_id) for span in calls] == [("forward", "2" * 16)]
    assert calls[0].attributes["server.address"] == "engine"
    assert calls[0].attributes["server.port"] == 8000
    assert not [value for span in told(full()) for value in span.attributes.values() if "secret" in str(value)]
    twice = exchange(*CHAT, "splice", "forward", "splice", "forward", "relay", "settle", backend_url="https://e")
    ids = [span.span_id for span in told(twice) if span.name == "forward"]
    assert ids == [None, "2" * 16]


def test_the_models_facts_stand_once_under_their_conventional_names() -> None:
    whole, *stages = told(full())
    expected = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm", "gen_ai.request.model": "alias",
        "gen_ai.response.model": "Qwen/Qwen3-VL-8B", "gen_ai.request.max_tokens": 64, "gen_ai.request.stream": True,
        "gen_ai.request.choice.count": 2, "gen_ai.usage.input_tokens": 290, "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 240, "gen_ai.response.time_to_first_chunk": 1.0,
    }  # fmt: skip
    assert {name: value for name, value in whole.attributes.items() if name.startswith("gen_ai.")} == expected
    assert not [name for span in stages for name in span.attributes if name.startswith("gen_ai.")]
    assert whole.attributes["vlmgw.images.tokens_asked"] == 900
    assert whole.attributes["vlmgw.images.tokens_sent"] == 256
    assert whole.attributes["vlmgw.tenant"] == "acme"


def test_every_name_that_is_not_ours_is_in_the_conventions() -> None:
    known = {
        value
        for module in (gen_ai, http_attributes, error_attributes, server_attributes, url_attributes)
        for name, value in vars(module).items()
        if name.isupper()
    }
    refused = exchange("accept", outcome="rejected", code="malformed", status=400)
    used = {name for x in (full(), refused) for span in told(x) for name in span.attributes}
    assert {name for name in used if not name.startswith("vlmgw.")} <= known


@pytest.mark.parametrize(
    ("stages", "outcome", "dialect", "ended_in"),
    [
        ((), "rejected", "openai_chat", "accept"),
        (("accept",), "rejected", "openai_chat", "read"),
        (CHAT[:3], "rejected", "openai_chat", "check"),
        (CHAT[:4], "client_gone", "openai_chat", "fetch"),
        (CHAT[:8], "shed", "openai_chat", "reserve"),
        (WHOLE[:12], "backend_failed", "openai_chat", "forward"),
        (WHOLE[:13], "client_gone", "openai_chat", "relay"),
        (("accept", "decide"), "backend_failed", "pass_through", "forward"),
        (("accept",), "shed", "pass_through", "reserve"),
    ],
)
def test_the_stage_in_which_it_ended_is_told_too(
    stages: tuple[str, ...], outcome: str, dialect: str, ended_in: str
) -> None:
    x = exchange(*stages, outcome=outcome, dialect=dialect)
    x.ended_s = (x.ended_s or 0.0) + 0.5
    whole, *_, last = told(x)
    assert last.name == ended_in
    assert last.end_ns == whole.end_ns
    assert last.end_ns - last.start_ns == 500_000_000
    assert (last.span_id == "2" * 16) is (ended_in == "forward")


@pytest.mark.parametrize(
    ("outcome", "status", "is_error"),
    [("ok", 200, False), ("rejected", 400, False), ("shed", 429, False), ("shed", 503, True), ("bug", 500, True),
     ("backend_failed", 200, True), ("client_gone", None, False), ("backend_refused", 500, True)],
)  # fmt: skip
def test_what_a_client_gets_wrong_is_no_error_of_the_server(outcome: str, status: int | None, is_error: bool) -> None:
    whole, *_ = told(exchange("accept", outcome=outcome, status=status))
    assert whole.is_error is is_error


def test_names_are_few() -> None:
    made_up = exchange("accept", "read", model="no such model")
    assert told(made_up)[0].name == "chat"
    assert told(replace(made_up, dialect="pass_through", method="GET"))[0].name == "GET pass_through"


def test_without_a_trace_there_is_nothing() -> None:
    assert told(exchange(*WHOLE, trace=None)) == []
