"""Spans on their way: decoded from what a real collector was sent, and what becomes of one that does not answer."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway import __version__
from gateway.record import AskedFor
from gateway.telemetry import spans as module
from gateway.telemetry.log import JsonLog
from gateway.telemetry.spans import Spans, SpanSettings
from gateway.telemetry.trace import SpanTally
from tests.telemetry.collector import CLIENT, ERROR, Collector
from tests.telemetry.test_span_facts import TRACE, WHOLE, exchange, full


def settings(url: str, **changes: Any) -> SpanSettings:
    return replace(SpanSettings(f"{url}/v1/traces", {"X-Scope": "mine"}, "gw", 1.0, 30.0), **changes)


@pytest.fixture(autouse=True)
def at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is sent when it ends and not earlier, and whoever takes it has all the time that a busy machine may need."""
    monkeypatch.setattr(module, "_SEND_EVERY_S", 3600.0)
    monkeypatch.setattr(module, "_CLOSE_S", 30.0)


async def sent(url: str, *calls: Callable[[Spans], None], **changes: Any) -> tuple[SpanTally, list[dict[str, Any]]]:
    """What was counted and logged once all is over."""
    out = io.BytesIO()
    log = JsonLog(stream=out)
    spans = Spans(settings(url, **changes), log)
    for call in calls:
        call(spans)
    await spans.stop()
    log.close()
    return spans.tally(), [json.loads(line) for line in out.getvalue().splitlines()]


async def test_an_exchange_arrives_whole() -> None:
    with Collector() as collector:
        tally, lines = await sent(collector.url, lambda spans: spans.add(1_000.0, full()))
    assert (tally, lines) == (SpanTally(1, 0, 0), [])
    assert collector.paths == ["/v1/traces"]
    assert collector.headers[0]["x-scope"] == "mine"
    whole, forward = collector.whole(), collector.stages()["forward"]
    assert len(collector.spans) == 1 + len(WHOLE)
    assert {span.trace_id for span in collector.spans} == {TRACE.trace_id}
    assert (whole.parent_id, whole.span_id) == (TRACE.parent_id, TRACE.span_id)
    assert (forward.span_id, forward.parent_id, forward.kind) == (TRACE.forward_id, TRACE.span_id, CLIENT)
    assert whole.attributes["gen_ai.usage.input_tokens"] == 290
    assert (whole.resource["service.name"], whole.resource["service.version"]) == ("gw", __version__)
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)


async def test_many_go_in_batches_and_failures_are_marked() -> None:
    failed = exchange("accept", outcome="bug", status=500, code="gateway_bug")

    def add(spans: Spans) -> None:
        for _ in range(70):
            spans.add(1_000.0, failed)

    with Collector() as collector:
        tally, _ = await sent(collector.url, add)
    assert tally == SpanTally(70, 0, 0)
    assert len(collector.paths) == 3
    assert [span.status for span in collector.spans if span.name == "chat"] == [ERROR] * 70


async def test_what_the_protocol_cannot_hold_costs_no_other_exchange() -> None:
    asked = AskedFor(0, (), 0, 0, 1, 1, 10**30, 1, has_tools=False)
    odd = exchange("accept", model="\ud800x", known_model=True, asked=asked)
    with Collector() as collector:
        tally, lines = await sent(collector.url, lambda s: s.add(1_000.0, odd), lambda s: s.add(1_000.0, full()))
    assert (tally, lines) == (SpanTally(2, 0, 0), [])
    whole = collector.spans[0]
    assert (whole.name, whole.attributes["gen_ai.request.model"]) == ("chat ?x", "?x")
    assert whole.attributes["gen_ai.request.max_tokens"] == str(10**30)


async def test_what_is_not_sampled_costs_nothing_more() -> None:
    with Collector() as collector:
        unsampled = exchange("accept", trace=replace(TRACE, sampled=False))
        tally, _ = await sent(
            collector.url, lambda s: s.add(1.0, unsampled), lambda s: s.add(1.0, exchange("accept", trace=None))
        )
    assert tally == SpanTally(0, 0, 0)
    assert collector.paths == []


async def test_a_dead_collector_costs_one_warning_and_no_secret() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"

        def add(spans: Spans) -> None:
            for _ in range(50):
                spans.add(1_000.0, full())

        tally, lines = await sent(url, add, timeout_s=0.2)
    assert tally == SpanTally(0, 50, 0)
    assert [(line["level"], line["event"]) for line in lines] == [("warning", "spans_not_sent")]
    assert lines[0]["reason"]
    assert "mine" not in json.dumps(lines)


async def test_a_refusing_collector_is_told_apart_by_its_reason() -> None:
    with Collector(status=401) as collector:
        tally, lines = await sent(collector.url, lambda spans: spans.add(1_000.0, full()))
    assert tally.failed == 1
    assert "401" in lines[0]["reason"]


async def test_the_line_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_WAITING_EXCHANGES", 2)

    def add(spans: Spans) -> None:
        for _ in range(5):
            spans.add(1_000.0, full())

    with Collector() as collector:
        tally, _ = await sent(collector.url, add)
    assert tally == SpanTally(2, 0, 3)
    assert len([span for span in collector.spans if span.name == "chat alias"]) == 2
