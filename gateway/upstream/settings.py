"""What the upstream side is told at start: its backends, time limits and bounds. Frozen; the configuration fills it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from gateway.types import BackendName, BackendRole, EngineKind
from gateway.upstream.kv_events.settings import KvEventsSettings
from gateway.upstream.outliers import OutlierRules

NO_KV_EVENTS = "off"
# A name stands in headers, logs and metrics, also one that a cluster gives.
_NAME_LIMIT = 255


# sglang-router 0.3.2 with --policy manual; vllm-router 0.1.17 with consistent_hash or sticky_least_loaded.
ROUTING_HEADERS = {"sglang-router": "x-smg-routing-key", "vllm-router": "x-session-id"}
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """One engine. ``url`` is its root (a trailing ``/v1`` is taken off); ``name`` defaults to ``host:port``.

    ``None`` or empty anywhere below = learn it from the engine. ``kv_events`` ``off`` = it publishes none. The ``tls``
    files (PEM) are the authorities that sign for the engine, instead of the system's, and our own certificate and key;
    ``tls_server_name`` is the name on its certificate, where that is not the URL's host.
    Raises ValueError for a URL that is no http(s) root, a name that no header can hold, and files of TLS where there
    is none.
    """

    url: str
    name: str = ""
    engine: EngineKind | Literal["auto"] = "auto"
    role: BackendRole = BackendRole.FULL
    bootstrap_port: int = 8998
    max_requests: int | None = None
    max_prefill_tokens: int | None = None
    priorities: bool = False
    lend_affinity: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_pixels: int | None = None
    context_tokens: int | None = None
    kv_tokens: int | None = None
    vision: bool | None = None
    models: tuple[str, ...] = ()
    max_images: int | None = None
    kv_block_tokens: int | None = None
    prefix_hash: str | None = None
    encoder_tokens: int | None = None
    encoder_cache_tokens: int | None = None
    prefill_chunk_tokens: int | None = None
    api_servers: int | None = None
    kv_events: str | None = None
    kv_events_replay: str | None = None
    takes_ids: bool | None = None
    image_cache_bytes: int | None = None
    kv_hash_seed: str | None = None
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    tls_server_name: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if self.unix_path is None and (
            parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment
        ):
            raise ValueError(f"a backend's url must look like http://host:port or unix:///path, not {self.url!r}")
        if not self.backend_name.isprintable() or len(self.backend_name) > _NAME_LIMIT:
            raise ValueError(
                f"a backend's name has at most {_NAME_LIMIT} printable characters, not {self.backend_name!r:.80}"
            )
        if parts.port == 0:
            raise ValueError(f"a backend's url has a port between 1 and 65535: {self.url!r}")
        if parts.username or parts.password:
            raise ValueError("credentials do not belong into a backend's url; use api_key")
        if parts.scheme != "https" and any(
            (self.tls_ca_file, self.tls_cert_file, self.tls_key_file, self.tls_server_name)
        ):
            raise ValueError(f"tls settings are of no use for {self.url!r}: its url must begin with https://")
        if self.lend_affinity is not None and not _HEADER_NAME.fullmatch(self.lend_affinity):
            raise ValueError(f"lend_affinity names a router or a header, not {self.lend_affinity!r}")
        if self.tls_key_file and not self.tls_cert_file:
            raise ValueError("tls_key_file needs tls_cert_file, whose key it is")

    @property
    def unix_path(self) -> str | None:
        """The socket of ``unix:///path``."""
        parts = urlsplit(self.url)
        is_path = parts.scheme == "unix" and not parts.netloc and len(parts.path) > 1 and parts.path.startswith("/")
        return parts.path if is_path else None

    @property
    def is_https(self) -> bool:
        return urlsplit(self.url).scheme == "https"

    @property
    def affinity_header(self) -> str | None:
        """The header by which the router behind this address places requests, in lower case."""
        return (
            None if self.lend_affinity is None else ROUTING_HEADERS.get(self.lend_affinity, self.lend_affinity).lower()
        )

    @property
    def root(self) -> str:
        """The URL to which request paths are appended: no trailing slash, no ``/v1``."""
        if self.unix_path is not None:
            # A host of its own for every path, which no name server knows: connections are kept apart by it.
            return f"http://unix-{sha256(self.unix_path.encode()).hexdigest()[:16]}.invalid"
        return self.url.rstrip("/").removesuffix("/v1")

    @property
    def backend_name(self) -> BackendName:
        return BackendName(self.name or self.unix_path or urlsplit(self.url).netloc)


Found: TypeAlias = Sequence[BackendSettings]


class Source(Protocol):
    """Somebody who knows backends (``sources``). Holds nothing before ``watch`` and after it."""

    async def watch(self, found: Callable[[Found], None], failed: Callable[[str], None]) -> None:
        """Tell every complete answer and every failure, until cancelled. Anything else it raises is a failure too."""
        ...


@dataclass(frozen=True, slots=True)
class NamedSource:
    """``hold_s``: how long an empty answer must last before it is believed."""

    name: str
    source: Source
    hold_s: float = 60.0


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """Time limits in seconds. ``sources`` add backends to the fixed ones, and take their own away again.

    ``response_timeout_s`` counts from the last body byte to the response's head, and bounds every stall while the body
    is sent; ``idle_timeout_s`` is the longest silence between two pieces of a response. ``keepalive_s`` must stay below
    the engines' own idle limit: vLLM and SGLang run uvicorn, which closes after 5 s.

    ``retry_ratio`` and ``retry_floor_per_s`` size the retry budget. ``forward_authorization``: pass the client's
    Authorization on (only where it is no key of ours). ``index_entries`` bounds the memory of who holds what, over all
    backends. ``discovery_timeout_s`` bounds what start-up waits for the engines.

    ``revival_interval_s``: between probes of a backend that is down or in doubt. ``gone_grace_s``: how long an exchange
    may be silent once nobody listens on its backend's port. ``rest_limit_s`` is the longest ``Retry-After`` believed.
    ``slow_start_s``: how long the share of one that came back grows.
    """

    backends: tuple[BackendSettings, ...]
    kv_events: KvEventsSettings | None = None
    sources: tuple[NamedSource, ...] = ()
    connect_timeout_s: float = 2.0
    response_timeout_s: float = 600.0
    idle_timeout_s: float = 120.0
    keepalive_s: float = 3.0
    forward_authorization: bool = False
    retry_ratio: float = 0.2
    retry_floor_per_s: float = 1.0
    index_entries: int = 1 << 20
    discovery_timeout_s: float = 1.5
    discovery_interval_s: float = 60.0
    probe_interval_s: float = 5.0
    revival_interval_s: float = 0.5
    probe_timeout_s: float = 2.0
    waking_interval_s: float = 60.0
    probe_misses: int = 2
    draining_s: float = 30.0
    leg_timeout_s: float = 30.0
    encodings_kept_s: float = 0.0
    breaker_failures: int = 5
    breaker_open_s: float = 2.0
    breaker_open_limit_s: float = 30.0
    slow_start_s: float = 30.0
    rest_limit_s: float = 30.0
    gone_grace_s: float = 10.0
    outliers: OutlierRules = field(default_factory=OutlierRules)

    def __post_init__(self) -> None:
        names = [backend.backend_name for backend in self.backends]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two backends are called {twice[0]!r}; give each a name of its own")
