"""CORS as browsers apply it: preflights answered here, answers readable with every header of ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.api.cors import Cors
from gateway.api.handler import DataHandler
from gateway.api.server import DataServer
from tests.api.harness import Answer, Serving, Wire, post

ORIGIN = "https://app.example"
PREFLIGHT = (
    "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: g\r\nOrigin: {origin}\r\n"
    "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,x-vlmgw-task\r\n\r\n"
)


async def _asked(cors: Cors | None, data: bytes, *, has_body: bool = True) -> tuple[Answer, Serving]:
    state = Serving()
    server = DataServer(
        DataHandler(replace(state.edge(), cors=cors)), host="127.0.0.1", port=0, keepalive_timeout_s=5.0
    )
    wire = await Wire.to(await server.start())
    try:
        await wire.send(data)
        return await wire.answer(has_body=has_body), state
    finally:
        wire.close()
        await server.stop()
        state.slab.close()


async def test_a_preflight_is_answered_here() -> None:
    answer, state = await _asked(Cors(frozenset({ORIGIN})), PREFLIGHT.format(origin=ORIGIN).encode(), has_body=False)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-methods"] == "POST"
    assert answer.headers["access-control-allow-headers"] == "authorization,x-vlmgw-task"
    assert answer.headers["access-control-max-age"] == "600"
    assert "Vary: Origin" in answer.head
    assert (state.heads, state.refused) == ([], [])


async def test_a_preflight_of_another_origin_is_granted_nothing() -> None:
    answer, _ = await _asked(
        Cors(frozenset({ORIGIN})), PREFLIGHT.format(origin="https://evil.example").encode(), has_body=False
    )
    assert answer.status == 204
    assert "access-control-allow" not in answer.head.lower()


async def test_options_without_an_origin_tells_the_methods() -> None:
    answer, _ = await _asked(Cors(frozenset({"*"})), b"OPTIONS /v1/models HTTP/1.1\r\nHost: g\r\n\r\n", has_body=False)
    assert (answer.status, answer.headers["allow"]) == (204, "GET, HEAD, OPTIONS")


async def test_without_configuration_options_is_no_method_of_ours() -> None:
    _, state = await _asked(None, PREFLIGHT.format(origin=ORIGIN).encode())
    assert [type(error).__name__ for _, error in state.refused] == ["MethodNotAllowed"]


async def test_answers_and_errors_can_be_read_with_our_headers() -> None:
    cors = Cors(frozenset({ORIGIN}), credentials=True)
    answer, _ = await _asked(cors, post(b"{}", f"Origin: {ORIGIN}"))
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["access-control-expose-headers"] == "x-request-id"
    refused, _ = await _asked(cors, post(b"{}", f"Origin: {ORIGIN}", path="/nowhere"))
    assert refused.status == 404
    assert refused.headers["access-control-allow-origin"] == ORIGIN
    assert "x-vlmgw-error" in refused.headers["access-control-expose-headers"]


@pytest.mark.parametrize("origin", [None, "https://evil.example"])
def test_a_backends_own_cors_headers_are_replaced(origin: str | None) -> None:
    cors = Cors(frozenset({ORIGIN}))
    assert cors.answered(origin, [("Access-Control-Allow-Origin", "*"), ("A", "1")]) == [("A", "1"), ("Vary", "Origin")]


def test_everybody_needs_no_vary() -> None:
    told = dict(Cors(frozenset({"*"})).answered(ORIGIN, [("X-A", "1"), ("Content-Type", "x")]))
    assert told["Access-Control-Allow-Origin"] == "*"
    assert told["Access-Control-Expose-Headers"] == "x-a"
    assert "Vary" not in told
