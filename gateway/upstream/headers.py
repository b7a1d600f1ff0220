"""Which headers cross to the engine and back. One pass per message, on lower-cased names.

Dropped both ways: hop-by-hop headers (RFC 9110 7.6.1), whatever ``Connection`` nominates, and framing, which belongs to
each hop. Dropped towards engines besides: what steers an engine's scheduler or a router behind us, because a client
that sets it chooses its own priority, rank or cache; and credentials, unless told otherwise. Everything else passes,
doubles included, in its order and spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.types import HeaderList
from gateway.types.per_request import per_request

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
    }
)
# Ours on every hop: the backend's Host, the length of the body we send; a 100-continue was answered by our own edge.
_FRAMING = frozenset({"host", "content-length", "expect"})
# vLLM 0.32: rank, priority and session of the scheduler, and a load report in the response's headers.
# SGLang 0.5.23: rank, labels on its metrics, and token ids echoed in the response (x-sglext-*, below).
_ENGINE_ROUTING = frozenset(
    {
        "x-data-parallel-rank",
        "x-vllm-priority",
        "x-session-id",
        "endpoint-load-metrics-format",
        "x-custom-labels",
    }
)
# sglang-router's and SGLang's routing keys, SGLang's overrides of body fields (rid above all), token echoes, and our
# own steering headers, which mean nothing behind us.
_ENGINE_ROUTING_PREFIXES = ("x-smg-", "x-override-", "x-sglext-")
_OWN_PREFIX = "x-vlmgw-"
# Keys of the APIs' own clients: they are our tenants' keys, never an engine's.
_CREDENTIALS = frozenset({"authorization", "x-api-key", "api-key"})
_DROPPED = _HOP_BY_HOP | _FRAMING | _ENGINE_ROUTING | _CREDENTIALS
# What a response tells of its engine's load is for us: clients are not to see how busy a fleet is.
LOAD_REPORT = "endpoint-load-metrics"
ASK_FOR_REPORT = ("endpoint-load-metrics-format", "json")
_DROPPED_FROM_RESPONSE = _HOP_BY_HOP | {"content-length", LOAD_REPORT}


@per_request(frozen=True, slots=True)
class Outgoing:
    """Request headers for one hop. ``stripped`` counts the steering headers a client had sent."""

    headers: list[tuple[str, str]]
    stripped: int


def lend(
    received: HeaderList, hop: tuple[tuple[str, str], ...], name: str, key: str
) -> tuple[HeaderList, tuple[tuple[str, str], ...]]:
    """The headers for a router that places requests by the header ``name``: ours (none without a ``key``), no other."""
    others = [pair for pair in received if pair[0].lower() != name]
    return others, (*hop, (name, key)) if key else hop


def outgoing(received: HeaderList, hop: Sequence[tuple[str, str]], *, keep_authorization: bool) -> Outgoing:
    """The client's end-to-end headers behind the hop's own (Host, the backend's key)."""
    headers = list(hop)
    connection: list[str] = []
    stripped = 0
    names = set()
    for name, value in received:
        lower = name.lower()
        names.add(lower)
        if lower in _DROPPED:
            if lower in _ENGINE_ROUTING:
                stripped += 1
            elif lower == "connection":
                connection.append(value)
            elif keep_authorization and lower in _CREDENTIALS:
                headers.append((name, value))
        elif lower.startswith("x-") and lower.startswith(_ENGINE_ROUTING_PREFIXES):
            stripped += 1
        elif not lower.startswith(_OWN_PREFIX):
            headers.append((name, value))
    if len(names) != len(received):
        headers = _spelt_alike(headers)
    nominated = _nominated(connection)
    if nominated:
        own = len(hop)
        headers[own:] = [pair for pair in headers[own:] if pair[0].lower() not in nominated]
    return Outgoing(headers, stripped)


def _spelt_alike(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Headers of one name under its first spelling: aiohttp keeps doubles only of what is spelt the same."""
    spellings: dict[str, str] = {}
    return [(spellings.setdefault(name.lower(), name), value) for name, value in headers]


def incoming(received: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The engine's end-to-end headers, without Content-Length: the edge frames its own message."""
    headers: list[tuple[str, str]] = []
    connection: list[str] = []
    for name, value in received:
        lower = name.lower()
        if lower not in _DROPPED_FROM_RESPONSE:
            headers.append((name, value))
        elif lower == "connection":
            connection.append(value)
    nominated = _nominated(connection)
    if nominated:
        return [pair for pair in headers if pair[0].lower() not in nominated]
    return headers


def _nominated(connection: Sequence[str]) -> frozenset[str]:
    if not connection:
        return frozenset()
    tokens = (token.strip().lower() for value in connection for token in value.split(","))
    return frozenset(token for token in tokens if token not in ("", "close", "keep-alive"))
