"""Which traceparent headers are believed, and which trace an exchange is part of."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.record import RequestHead
from gateway.telemetry.trace import begin_trace, trace_id, with_trace
from gateway.types import RequestId

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header", [f"00-{TRACE}-{PARENT}-01", f" 00-{TRACE}-{PARENT}-00 ", f"cc-{TRACE}-{PARENT}-01-more"]
)
def test_a_valid_header_gives_its_trace(header: str) -> None:
    assert trace_id(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}x-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\n-",
    ],
)
def test_what_the_recommendation_calls_invalid_is_no_trace(header: str) -> None:
    assert trace_id(header) is None


def head(*headers: tuple[str, str]) -> RequestHead:
    return RequestHead("POST", "/v1/chat/completions", "", headers, 2, RequestId("r"))


@pytest.mark.parametrize(("flags", "sampled"), [("01", True), ("00", False), ("03", True), ("fe", False)])
def test_a_clients_trace_goes_on_and_its_decision_holds(flags: str, sampled: bool) -> None:
    trace = begin_trace(head(("Traceparent", f"00-{TRACE}-{PARENT}-{flags}")), 0.0 if sampled else 1.0)
    assert (trace.trace_id, trace.parent_id, trace.sampled) == (TRACE, PARENT, sampled)
    assert trace.traceparent == f"00-{TRACE}-{trace.forward_id}-{'01' if sampled else '00'}"
    assert len({trace.span_id, trace.forward_id, PARENT}) == 3


@pytest.mark.parametrize("headers", [(), (("traceparent", "nonsense"),)])
def test_elsewhere_a_trace_begins(headers: tuple[tuple[str, str], ...]) -> None:
    trace = begin_trace(head(*headers), 1.0)
    assert trace.parent_id is None
    assert trace.sampled
    assert trace_id(trace.traceparent) == trace.trace_id


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**64 - 1), st.floats(0, 1))
def test_ids_are_never_zero_and_the_share_is_of_the_lower_half(own: int, span: int, ratio: float) -> None:
    trace = begin_trace(head(), ratio, lambda bits: own if bits == 128 else span)
    assert re.fullmatch(r"[0-9a-f]{32}", trace.trace_id)
    assert re.fullmatch(r"[0-9a-f]{16}", trace.span_id)
    assert int(trace.trace_id, 16) > 0
    assert int(trace.span_id, 16) > 0
    assert trace.sampled is ((own or 1) % 2**64 < round(ratio * 2**64))


def test_the_head_and_the_log_know_the_trace() -> None:
    told = with_trace(head(), 0.0)
    assert told.trace is not None
    assert told.trace_id == told.trace.trace_id
