"""The access line: what stands in it, and what does not."""

from __future__ import annotations

from gateway.record import AskedFor, ExchangeRecord
from gateway.telemetry.access import access_line
from gateway.types import RequestId, Usage


def record() -> ExchangeRecord:
    return ExchangeRecord(RequestId("r"), "openai_chat", "/v1/chat/completions", 1.0)


def test_a_plain_line_has_no_more_than_what_every_line_has() -> None:
    line = access_line(record(), 7.0)
    assert list(line) == [
        "time", "event", "request_id", "dialect", "path", "status", "outcome", "total_ms", "stages_ms",
        "request_bytes", "forwarded_bytes", "response_bytes",
    ]  # fmt: skip
    assert (line["time"], line["total_ms"], line["stages_ms"]) == (7.0, 0.0, {})


def test_stages_are_summed_once_and_may_be_given() -> None:
    told = record()
    told.stages = [("check", 0.001), ("plan", 0.002), ("check", 0.003)]
    assert access_line(told, 7.0)["stages_ms"] == {"check": 4.0, "plan": 2.0}
    assert access_line(told, 7.0, {"plan": 0.5})["stages_ms"] == {"plan": 500.0}


def test_all_that_applies_is_told() -> None:
    told = record()
    told.code, told.rule, told.detail = "rate_exceeded", "rates", "d"
    told.tenant, told.key, told.task, told.task_reason, told.model = "acme", "k", "chat", "default", "m" * 500
    told.stream = told.shadow = True
    told.backend, told.engine, told.decision_reason, told.first_token_expected_s = "b", "vllm", "only_one", 0.5
    told.exact_prefix_tokens, told.prefix_known_tokens = 0, 12
    told.attempts, told.retry_reasons, told.stranded, told.stripped_fields = 2, ["connect"], "sent", ("priority",)
    told.trace_id, told.first_byte_s, told.findings = "t", 1.25, ["f"]
    told.asked = AskedFor(0, (), 0, 0, 3, 40, None, 1, has_tools=False)
    told.usage = Usage(5, 6, cached_tokens=0, image_tokens=2, video_tokens=1)
    line = access_line(told, 7.0)
    assert {name: line[name] for name in list(line)[12:]} == {
        "code": "rate_exceeded", "rule": "rates", "detail": "d", "tenant": "acme", "key": "k", "task": "chat",
        "task_reason": "default", "model": "m" * 128, "stream": True, "shadow": True, "backend": "b", "engine": "vllm",
        "decision": "only_one", "exact_prefix": 0, "prefix_known": 12, "first_token_expected_ms": 500.0, "attempts": 2,
        "retries": ["connect"], "stranded": "sent", "stripped": ("priority",), "trace_id": "t", "ttfb_ms": 250.0,
        "asked": {"messages": 3, "text_bytes": 40}, "findings": ["f"],
        "usage": {"prompt": 5, "completion": 6, "cached": 0, "image": 2, "video": 1},
    }  # fmt: skip
