"""A thousand generated exchanges, sent to a backend directly and through the gateway: the same bytes at both ends.

But for what ``docs/behaviour.md`` lists under *What a proxy changes*: the lists there are what this test allows, and
nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.e2e.exchanges import Exchange, exchanges
from tests.e2e.processes import Gateway
from tests.e2e.wires import Headers, Message, Peer, ScriptedBackend, connect

EXCHANGES = 1000
_ROW = re.compile(r"^\| (request|response) \| (dropped|made anew|added|added where missing) \| (.+?) \|", re.MULTILINE)


def _differences() -> dict[tuple[str, str], list[str]]:
    text = (Path(__file__).parents[2] / "docs" / "behaviour.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str], list[str]] = {}
    for message, what, names in _ROW.findall(text):
        found.setdefault((message, what), []).extend(re.findall(r"`([^`]+)`", names))
    return found


DIFFERENCES = _differences()


def _is_any(name: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _kept(message: str, headers: Headers) -> Headers:
    """What must agree: neither dropped nor made anew nor added, nor nominated by ``Connection``."""
    patterns = [
        name
        for (of, what), names in DIFFERENCES.items()
        if of == message
        for name in names
        if what != "added where missing"
    ]
    nominated = [t.strip().lower().decode() for key, value in headers if key == "connection" for t in value.split(b",")]
    return tuple((name, value) for name, value in headers if not _is_any(name, patterns) and name not in nominated)


@dataclass(slots=True)
class _Pair:
    """The backend, the gateway before it, and a connection to each that is used as long as it lives."""

    backend: ScriptedBackend
    gateway_port: int
    peers: dict[int, Peer] = field(default_factory=dict, repr=False)

    def ask(self, port: int, exchange: Exchange) -> tuple[Message, Message]:
        """The request as it reached the backend, the answer as it reached the client."""
        peer = self.peers.get(port)
        if peer is None or peer.closed:
            peer = self.peers[port] = connect(port)
        self.backend.seen.clear()
        self.backend.script = exchange.answer
        peer.send(exchange.pieces("backend.test"))
        answer = peer.message()
        assert answer is not None, "closed without an answer"
        assert len(self.backend.seen) == 1, "a request reaches the backend once"
        if b"close" in answer.all("connection"):
            peer.close()
        return self.backend.seen[0], answer


@pytest.fixture(scope="module")
def pair() -> Iterator[_Pair]:
    with ScriptedBackend() as backend, Gateway("--backend", f"http://127.0.0.1:{backend.port}") as gateway:
        found = _Pair(backend, int(gateway.url.rsplit(":", 1)[1]))
        yield found
        for peer in found.peers.values():
            peer.close()


def test_the_documented_differences_are_all_of_a_kind_that_is_checked() -> None:
    assert {key for key, names in DIFFERENCES.items() if names} >= {
        ("request", "dropped"), ("request", "made anew"), ("request", "added where missing"),
        ("response", "dropped"), ("response", "made anew"), ("response", "added"), ("response", "added where missing"),
    }  # fmt: skip


@pytest.mark.slow
@settings(
    max_examples=EXCHANGES, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(exchange=exchanges())
def test_a_thousand_exchanges_differ_by_nothing_but_what_is_documented(pair: _Pair, exchange: Exchange) -> None:
    direct_request, direct = pair.ask(pair.backend.port, exchange)
    request, answer = pair.ask(pair.gateway_port, exchange)

    assert request.first_line == direct_request.first_line
    assert request.body == direct_request.body
    _agree("request", request.headers, direct_request.headers)

    assert answer.first_line.split(b" ")[1] == direct.first_line.split(b" ")[1]
    assert (answer.body, answer.whole) == (direct.body, direct.whole)
    _agree("response", answer.headers, direct.headers)
    if "content-length" in dict(direct.headers):
        assert answer.all("content-length") == direct.all("content-length")


def _agree(message: str, got: Headers, sent: Headers) -> None:
    had = {name for name, _ in _kept(message, sent)}
    optional = DIFFERENCES[message, "added where missing"]
    got = tuple((name, value) for name, value in got if name in had or not _is_any(name, optional))
    assert _kept(message, got) == _kept(message, sent)
