"""Which traceparent headers are believed."""

from __future__ import annotations

import pytest

from gateway.telemetry.trace import trace_id

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
