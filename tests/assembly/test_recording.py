"""Traces through a real gateway: what the backend is told, what the collector gets, and that off means untouched."""

from __future__ import annotations

import io

import pytest

from gateway.assembly import recording
from gateway.assembly.recording import open_spans
from gateway.config.tracing import TracingConfig
from gateway.telemetry import spans
from gateway.telemetry.log import JsonLog
from tests.app.running import COMPLETION, running
from tests.telemetry.collector import CLIENT, Collector
from tests.upstream.scripted import Exchange, answering, json_response

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes the spans has all the time that a busy machine may need."""
    monkeypatch.setattr(spans, "_CLOSE_S", 30.0)


async def told_backend(headers: dict[str, str], **flags: object) -> Exchange:
    """One chat through the gateway; the request as the backend got it. The gateway has ended by then."""
    seen: list[Exchange] = []

    async def chat(exchange: Exchange) -> None:
        seen.append(exchange)
        await answering(json_response(COMPLETION))(exchange)

    async with running(chat, **flags) as world:
        response = await world.data.post(
            "/v1/chat/completions",
            json={"model": "Qwen/Qwen3-VL-8B-Instruct", "messages": [{"role": "user", "content": "Hello."}]},
            headers=headers,
        )
        assert response.status_code == 200
        if flags:
            assert await world.metric("vlmgw_traced_requests_total", end="dropped") == 0
    return seen[0]


async def test_the_backends_parent_is_our_call_and_ours_the_client() -> None:
    with Collector() as collector:
        backend = await told_backend(CONTEXT, **{"tracing.otlp_endpoint": collector.url})
    whole, forward = collector.whole(), collector.stages()["forward"]
    assert (whole.trace_id, whole.parent_id) == (TRACE, PARENT)
    assert forward.kind == CLIENT
    assert forward.attributes["server.address"] == "127.0.0.1"
    assert backend.headers("traceparent") == [f"00-{TRACE}-{forward.span_id}-01"]
    assert backend.headers("tracestate") == ["vendor=1"]
    assert whole.attributes["gen_ai.usage.input_tokens"] == 12
    assert whole.attributes["gen_ai.request.model"] == "Qwen/Qwen3-VL-8B-Instruct"


async def test_a_trace_begins_here_and_what_is_not_sampled_is_told_on_but_not_sent() -> None:
    with Collector() as collector:
        flags = {"tracing.otlp_endpoint": collector.url, "tracing.sample_ratio": 0}
        backend = await told_backend({"traceparent": "nonsense", "tracestate": "vendor=1"}, **flags)
    assert collector.spans == []
    (given,) = backend.headers("traceparent")
    assert given.endswith("-00")
    assert backend.headers("tracestate") == []


async def test_off_means_untouched() -> None:
    backend = await told_backend(CONTEXT)
    assert {name: backend.headers(name) for name in CONTEXT} == {name: [value] for name, value in CONTEXT.items()}


def test_off_is_nobody_and_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    log = JsonLog(stream=io.BytesIO())
    assert open_spans(TracingConfig(), log) is None
    monkeypatch.setattr(recording, "find_spec", lambda _name: None)
    with pytest.raises(ValueError, match="extra otel"):
        open_spans(TracingConfig(otlp_endpoint="http://c"), log)
    log.close()
