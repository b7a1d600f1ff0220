"""The value benchmark's arithmetic; the engine itself is started by the benchmark only."""

from __future__ import annotations

import os

import pytest

from benchmarks import value


def test_how_far_two_fingerprints_are_apart() -> None:
    one = {"a": -1.0, "b": -2.0, "c": -3.0}
    assert value._apart(one, one) == 0.0
    assert value._apart(one, one | {"b": -2.25}) == pytest.approx(0.25)
    # A token that one does not name is at best as likely as the last that it does.
    assert value._apart(one, {"a": -1.0, "b": -2.0, "d": -2.5}) == pytest.approx(0.5)


def test_a_process_is_charged_for_what_it_did() -> None:
    before = value._cpu_s(os.getpid())
    sum(range(3_000_000))
    assert value._cpu_s(os.getpid()) >= before


def test_the_table_says_it_in_words() -> None:
    row = {"front_end_cpu_s": 6.5, "gateway_cpu_s": 0.0, "engine_bytes": 133_600_000}
    report: dict[str, object] = {
        "cpu_ratio_total": 0.22,
        "bytes_ratio": 0.035,
        "first_token_ms": {"direct": 1600.0, "gateway": 770.0},
        "same_prompt_tokens": True,
        "logprobs": {"lossless": 0.0, "jpeg": 0.027, "other_picture": 0.85, "bound": 0.001},
        "medians": {"direct": row, "gateway": row | {"gateway_cpu_s": 0.9}},
    }
    lines = value.table(report)
    assert lines[0].startswith("direct     6.50 s of API server +  0.00 s of gateway")
    assert "CPU 0.22 x, bytes 0.035 x of direct" in lines
