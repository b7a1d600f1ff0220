"""Metrics as text, read back."""

from __future__ import annotations

from gateway.cli.top.exposition import read_samples
from gateway.telemetry.metrics import Metrics


def test_what_the_gateway_writes_is_read() -> None:
    metrics = Metrics()
    metrics.inc("requests_total", "openai_chat", "ok", by=3)
    metrics.inc("tenant_requests_total", 'a"b\\c\nd', "ok")
    metrics.observe("loop_lag_seconds", 0.002)
    samples = read_samples(metrics.render().decode())
    assert samples["vlmgw_requests_total", (("dialect", "openai_chat"), ("outcome", "ok"))] == 3
    assert samples["vlmgw_tenant_requests_total", (("outcome", "ok"), ("tenant", 'a"b\\c\ufffdd'))] == 1
    assert samples["vlmgw_loop_lag_seconds_bucket", (("le", "+Inf"),)] == 1
    assert samples["vlmgw_loop_lag_seconds_count", ()] == 1


def test_what_is_no_sample_is_passed_over() -> None:
    assert read_samples('# HELP a b\n\n<html>\na{x="1"} nonsense\nb 2e3 1700000000\nc +Inf\nd NaN') == {
        ("b", ()): 2000.0
    }


def test_nothing_is_read_that_a_terminal_would_obey() -> None:
    assert read_samples('a{x="\x1b]0;mine\x07\x9b2J"} 1') == {("a", (("x", "\ufffd]0;mine\ufffd\ufffd2J"),)): 1}
