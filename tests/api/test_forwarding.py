"""Who asked: what each choice makes of a request's headers."""

from __future__ import annotations

import pytest

from gateway.api.forwarding import Forwarding, Hop
from gateway.api.handler import DataHandler
from gateway.api.server import DataServer
from tests.api.harness import Serving, Wire, post

HOP = Hop("192.0.2.1", "https", "api.example")
CLAIMED = [
    ("X-Forwarded-For", "203.0.113.9"),
    ("A", "1"),
    ("X-Forwarded-Proto", "http"),
    ("Forwarded", "for=203.0.113.9"),
]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("keep", CLAIMED),
        ("remove", [("A", "1")]),
        ("replace", [
            ("A", "1"), ("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "api.example"),
        ]),
        ("append", [
            ("A", "1"), ("X-Forwarded-Proto", "http"), ("Forwarded", "for=203.0.113.9"),
            ("X-Forwarded-For", "203.0.113.9, 192.0.2.1"), ("X-Forwarded-Host", "api.example"),
            ("Forwarded", "for=192.0.2.1;proto=https"),
        ]),
    ],
)  # fmt: skip
def test_a_choice_decides_what_engines_hear(choice: str, expected: list[tuple[str, str]]) -> None:
    assert list(Forwarding(choice).request_headers(CLAIMED, HOP)) == expected


def test_a_unix_socket_has_no_address_and_ipv6_is_quoted() -> None:
    assert ("X-Forwarded-For", "unknown") in Forwarding("replace").request_headers((), Hop("", "http", ""))
    six = Forwarding("append").request_headers([("Forwarded", "for=x")], Hop("2001:db8::1", "http", ""))
    assert ("Forwarded", 'for="[2001:db8::1]";proto=http') in six


async def test_via_is_written_both_ways_and_errors_carry_it() -> None:
    state = Serving()
    edge = state.edge()
    handler = DataHandler(
        type(edge)(**{n: getattr(edge, n) for n in edge.__slots__} | {"forwarding": Forwarding("replace", "gw1")})
    )
    server = DataServer(handler, host="127.0.0.1", port=0, keepalive_timeout_s=5.0)
    wire = await Wire.to(await server.start())
    try:
        await wire.send(post(b"{}", "Via: 1.0 before"))
        answer = await wire.answer()
        assert answer.headers["via"] == "1.1 gw1"
        assert [value for name, value in state.heads[0].headers if name == "Via"] == ["1.0 before", "1.1 gw1"]
        assert state.heads[0].header("x-forwarded-for") == "127.0.0.1"
        await wire.send(post(path="/nowhere"))
        assert (await wire.answer()).headers["via"] == "1.1 gw1"
    finally:
        wire.close()
        await server.stop()
        state.slab.close()
