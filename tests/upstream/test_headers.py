"""Which headers cross: hop-by-hop never, steering and keys not towards engines, the rest as it came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.headers import incoming, lend, outgoing

KEPT = [("X-Request-Id", "req-42"), ("traceparent", "00-1-2-01"), ("X-Two", "1"), ("X-Two", "2"), ("Cookie", "a=b")]


def test_end_to_end_headers_keep_order_spelling_and_doubles() -> None:
    assert outgoing(KEPT, (), keep_authorization=False).headers == KEPT
    assert incoming(KEPT) == KEPT


@pytest.mark.parametrize(
    "name",
    [
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Proxy-Authorization",
        "Content-Length",
    ],
)
def test_hop_by_hop_and_framing_cross_in_neither_direction(name: str) -> None:
    assert outgoing([(name, "x"), *KEPT], (), keep_authorization=True).headers == KEPT
    assert incoming([(name, "x"), *KEPT]) == KEPT


def test_what_connection_nominates_is_dropped_but_not_what_the_hop_sets() -> None:
    nominated = [("Connection", "keep-alive, X-Secret,  accept-encoding"), ("connection", "authorization")]
    received = [*nominated, ("X-Secret", "1"), ("Accept-Encoding", "gzip"), *KEPT]
    result = outgoing(received, (("Authorization", "Bearer engine"),), keep_authorization=True)
    assert result.headers == [("Authorization", "Bearer engine"), *KEPT]
    assert incoming([*nominated, ("x-secret", "1"), *KEPT]) == KEPT


@pytest.mark.parametrize(
    "name",
    [
        "X-data-parallel-rank",
        "X-Vllm-Priority",
        "X-Session-ID",
        "endpoint-load-metrics-format",
        "X-Custom-Labels",
        "x-smg-routing-key",
        "X-Override-Rid",
        "x-sglext-return-input-ids",
    ],
)
def test_headers_that_steer_an_engine_are_stripped_and_counted(name: str) -> None:
    result = outgoing([(name, "1"), *KEPT], (), keep_authorization=False)
    assert result.headers == KEPT
    assert result.stripped == 1


def test_our_own_headers_and_foreign_keys_go_no_further() -> None:
    received = [("X-Vlmgw-Task", "ocr"), ("Authorization", "Bearer a"), ("X-Api-Key", "b"), *KEPT]
    result = outgoing(received, (), keep_authorization=False)
    assert result.headers == KEPT
    assert result.stripped == 0
    kept = outgoing(received, (), keep_authorization=True)
    assert kept.headers == [("Authorization", "Bearer a"), ("X-Api-Key", "b"), *KEPT]


NAMES = st.sampled_from(["Connection", "X-A", "x-b", "Content-Type", "Host", "TE", "X-Vllm-Priority", "Accept"])


@given(st.lists(st.tuples(NAMES, st.sampled_from(["x-a", "close", "X-B, accept", "", ","]))))
def test_a_second_hop_finds_nothing_more_to_drop(received: list[tuple[str, str]]) -> None:
    once = outgoing(received, (), keep_authorization=False)
    again = outgoing(once.headers, (), keep_authorization=False)
    assert again.headers == once.headers
    assert again.stripped == 0
    assert incoming(incoming(received)) == incoming(received)


def test_doubles_go_out_under_one_spelling_so_that_none_is_lost() -> None:
    sent = outgoing((("X-A", "1"), ("x-a", "2"), ("B", "3"), ("X-a", "4")), (), keep_authorization=False)
    assert sent.headers == [("X-A", "1"), ("X-A", "2"), ("B", "3"), ("X-A", "4")]


def test_a_router_is_lent_our_key_and_no_client_s() -> None:
    received = [("X-Session-ID", "mine"), ("accept", "*/*")]
    others, hop = lend(received, (("Authorization", "Bearer k"),), "x-session-id", "ab")
    assert outgoing(others, hop, keep_authorization=False).headers == [
        ("Authorization", "Bearer k"), ("x-session-id", "ab"), ("accept", "*/*"),
    ]  # fmt: skip
    others, hop = lend(received, (), "x-session-id", "")
    assert (list(others), hop) == ([("accept", "*/*")], ())
