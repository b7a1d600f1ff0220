"""Where a backend's block events come from: addresses as engines write them, told apart by backend and rank.

Decided here: which address of ours belongs to which of theirs. Raises ValueError naming what cannot be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.types import BackendName

_LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """One backend's publishers. ``endpoint`` None: they connect to us, and are told by ``topic``.

    ``replay_endpoint`` None: what was missed is gone. ``ranks``: of data parallelism, each with the next port.
    ``hash_seed`` is set where the engine's own ``sha256_cbor`` is reproduced, otherwise blocks go by their contents.
    """

    endpoint: str | None
    replay_endpoint: str | None = None
    topic: str = ""
    ranks: int = 1
    hash_seed: str | None = None
    limit_entries: int = 1 << 20


@dataclass(frozen=True, slots=True)
class KvEventsSettings:
    """All publishers by backend. ``listen`` is where publishers that connect by themselves are awaited.

    ``replay_deadline_s`` bounds the wait for an answer; then the publisher is taken to keep nothing.
    """

    publishers: dict[BackendName, PublisherSettings]
    listen: str | None = None
    replay_deadline_s: float = 5.0


def address_of(endpoint: str, host: str, rank: int) -> str:
    """The address to connect to: a wildcard becomes the backend's own host, the port is moved by the rank.

    As engines do (vLLM 0.32.0 ``offset_endpoint_port``); only ``tcp://`` addresses have a host and a port.
    """
    if not endpoint.startswith("tcp://"):
        return endpoint if rank == 0 else f"{endpoint}_dp{rank}"
    where, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    number = int(port) + rank if port.isascii() and port.isdigit() else 0
    if not where or not 0 < number <= _LARGEST_PORT:
        raise ValueError(f"an address of KV events must look like tcp://host:5557, not {endpoint!r}")
    if where in ("*", "0.0.0.0", "[::]", "::"):  # noqa: S104  # what an engine binds, not what we do
        where = f"[{host}]" if ":" in host else host
    return f"tcp://{where}:{number}"


def host_of(url: str) -> str:
    """The host of a backend's URL."""
    return urlsplit(url).hostname or "localhost"
