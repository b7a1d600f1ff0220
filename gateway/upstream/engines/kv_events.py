"""Where an engine publishes its KV events, as it announces that, and as somebody else reaches it.

Sources: vLLM 0.32.0 ``GET /kv_event_sources`` (one entry per data-parallel rank, ports already moved by the rank; the
publisher binds where the address has a wildcard or is no TCP, else it connects); SGLang 0.5.23 ``/server_info``
``kv_events`` (a host and the base port, to which each rank is added). Not decided here: who listens to them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import replace

from gateway.types import KvEventSource
from gateway.upstream.engines.reading import JsonValue, whole, words

_TCP = "tcp://"
_ANY_HOST = frozenset({"*", "0.0.0.0", "::"})  # noqa: S104  # compared with, not bound to


def of_vllm(document: dict[str, JsonValue]) -> tuple[KvEventSource, ...]:
    """By rank; ranks that publish nothing are left out."""
    found = []
    for key, entry in sorted(document.items()):
        if not key.isascii() or not key.isdigit() or not isinstance(entry, dict):
            continue
        endpoint = words(entry.get("endpoint"))
        if endpoint is None or entry.get("enable_kv_cache_events") is not True or entry.get("publisher") != "zmq":
            continue
        # The publisher's own test: anything else than a plain host to go to.
        listens = "*" in endpoint or "::" in endpoint or not endpoint.startswith(_TCP)
        replay = words(entry.get("replay_endpoint"))
        found.append(KvEventSource(int(key), endpoint, replay, words(entry.get("topic")) or "", listens))
    return tuple(found)


def of_sglang(advertised: JsonValue) -> tuple[KvEventSource, ...]:
    """By rank, from ``kv_events`` of its server info; empty where it publishes none."""
    if not isinstance(advertised, dict) or advertised.get("publisher") != "zmq":
        return ()
    host, port = words(advertised.get("endpoint_host")) or "*", whole(advertised.get("endpoint_port_base"))
    if port is None:
        return ()
    replay = whole(advertised.get("replay_endpoint_port_base"))
    topic = words(advertised.get("topic")) or ""
    return tuple(
        KvEventSource(
            rank, f"{_TCP}{host}:{port + rank}", None if replay is None else f"{_TCP}{host}:{replay + rank}", topic
        )
        for rank in range(whole(advertised.get("dp_size")) or 1)
    )


def reached(sources: Iterable[KvEventSource], host: str) -> tuple[KvEventSource, ...]:
    """The same with ``host``, the backend's, in place of wildcards."""
    return tuple(
        replace(
            source,
            endpoint=_with_host(source.endpoint, host),
            replay_endpoint=None if source.replay_endpoint is None else _with_host(source.replay_endpoint, host),
        )
        for source in sources
    )


def _with_host(endpoint: str, host: str) -> str:
    if not endpoint.startswith(_TCP):
        return endpoint
    announced, colon, port = endpoint.removeprefix(_TCP).rpartition(":")
    if not colon or announced.strip("[]") not in _ANY_HOST:
        return endpoint
    return f"{_TCP}{_bracketed(host)}:{port}"


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host
