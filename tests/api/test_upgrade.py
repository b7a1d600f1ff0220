"""The handshake with a client: what is refused before a backend is asked, and what is answered."""

from __future__ import annotations

import logging

import pytest
from aiohttp import HttpVersion10, HttpVersion11
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from gateway.api.upgrade import Upgraded, check_handshake
from gateway.errors import InvalidRequest

# RFC 6455 §1.3 answers this key.
KEY, ANSWER = "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
GOOD = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": KEY,
}


@pytest.mark.parametrize(
    "change",
    [{}, {"Upgrade": "WebSocket"}, {"Connection": "keep-alive, Upgrade"}],
)
def test_a_handshake_in_any_spelling_is_one(change: dict[str, str]) -> None:
    check_handshake(make_mocked_request("GET", "/v1/realtime", {**GOOD, **change}))


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("Upgrade", "h2c", "Upgrade"),
        ("Upgrade", "h2c, websocket", "Upgrade"),
        ("Upgrade", None, "Upgrade"),
        ("Connection", "keep-alive", "Upgrade"),
        ("Connection", None, "Upgrade"),
        ("Sec-WebSocket-Version", "8", "Sec-WebSocket-Version"),
        ("Sec-WebSocket-Version", None, "Sec-WebSocket-Version"),
        ("Sec-WebSocket-Key", "c2hvcnQ=", "Sec-WebSocket-Key"),
        ("Sec-WebSocket-Key", "no base64 at all", "Sec-WebSocket-Key"),
        ("Sec-WebSocket-Key", "é", "Sec-WebSocket-Key"),
        ("Sec-WebSocket-Key", None, "Sec-WebSocket-Key"),
    ],
)
def test_what_is_none_is_named(name: str, value: str | None, part: str) -> None:
    headers = {key: given for key, given in {**GOOD, name: value}.items() if given is not None}
    with pytest.raises(InvalidRequest) as refused:
        check_handshake(make_mocked_request("GET", "/v1/realtime", headers, version=HttpVersion11))
    assert refused.value.part == part


def test_http_1_0_knows_no_upgrade() -> None:
    with pytest.raises(InvalidRequest):
        check_handshake(make_mocked_request("GET", "/v1/realtime", GOOD, version=HttpVersion10))


@pytest.mark.parametrize("chosen", [None, "realtime"])
def test_the_answer_is_the_rfcs_and_tells_no_log_what_was_offered(
    chosen: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A browser's only place for a key is a subprotocol; the backend's choice may stand in a second line of them."""
    offered = CIMultiDict(GOOD)
    offered.add("Sec-WebSocket-Protocol", "openai-insecure-api-key.sk-secret")
    offered.add("Sec-WebSocket-Protocol", "realtime")
    with caplog.at_level(logging.DEBUG):
        told, subprotocol, window, _ = Upgraded(chosen, close_timeout_s=5, limit_bytes=1024)._handshake(
            make_mocked_request("GET", "/v1/realtime", offered)
        )
    assert (told["Sec-WebSocket-Accept"], told.get("Sec-WebSocket-Protocol")) == (ANSWER, chosen)
    assert (subprotocol, window) == (chosen, 0)
    assert not caplog.records
