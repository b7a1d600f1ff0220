"""What can be wrong with backends and sources of backends that no single value shows.

Decided here: which addresses are none, which names are given twice. Not decided here: whether anybody answers there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from gateway.config.backends import BackendConfig, SourceConfig

# It stands in headers, logs and metrics.
NAME_LIMIT = 255
FILE, DNS, SRV, KUBERNETES = "file", "dns", "srv", "kubernetes"
SCHEMES = (FILE, DNS, SRV, KUBERNETES)
_OF_TLS = ("tls_ca_file", "tls_cert_file", "tls_key_file", "tls_server_name")
# RFC 9110 §5.6.2: a token.
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_ENDPOINT = re.compile(r"tcp://[^/\s]+:\d{1,5}|(ipc|inproc)://\S+")
_OF_KUBERNETES = ("selector", "api_server", "token_file", "ca_file")


def name_of(backend: BackendConfig) -> str:
    """What a backend is called: its name, else where it listens."""
    if backend.name:
        return backend.name
    try:
        parts = urlsplit(backend.url)
    except ValueError:
        return backend.url
    return parts.netloc or parts.path


def backend_problems(backends: Iterable[BackendConfig], where: str) -> list[str]:
    """One line for each entry of a list of backends that cannot be used."""
    problems = []
    names: set[str] = set()
    for index, backend in enumerate(backends):
        here = f"{where}.{index}"
        what = _url_problem(backend.url)
        if what is not None:
            problems.append(f"{here}.url: {what}")
        problems += [f"{here}.{problem}" for problem in _value_problems(backend)]
        name = name_of(backend)
        if not name.isprintable() or len(name) > NAME_LIMIT:
            problems.append(f"{here}.name: must be at most {NAME_LIMIT} printable characters, not {name!r:.80}")
        if backend.api_key is not None and not (backend.api_key.isascii() and backend.api_key.isprintable()):
            problems.append(f"{here}.api_key: must be printable ASCII, as a header holds it")
        if name in names:
            problems.append(f"{here}: {name} is given twice; give each backend a name of its own")
        names.add(name)
    return problems


def _url_problem(url: str) -> str | None:
    """What the address of a backend should have been; never shown with its credentials."""
    should = "must be an http:// or https:// URL, or unix:///path"
    if "@" in url and not url.startswith("unix:"):  # first of all: what is said below repeats parts of the address
        return "holds credentials; they belong into api_key"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"{should}: {error}"
    if parts.scheme == "unix" and not parts.netloc and len(parts.path) > 1 and parts.path.startswith("/"):
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"{should}, not {url!r}"
    if parts.query or parts.fragment:
        return f"{should} without ? and #, not {url!r}"
    return "must have a port between 1 and 65535" if port == 0 else None


def _value_problems(backend: BackendConfig) -> list[str]:
    """What cannot hold for any engine; also told, less precisely, where it is used (``upstream.settings``)."""
    problems = []
    if backend.lend_affinity is not None and not _HEADER_NAME.fullmatch(backend.lend_affinity):
        known = "sglang-router, vllm-router or the name of a header"
        problems.append(f"lend_affinity: must be {known}, not {backend.lend_affinity!r}")
    for key in ("kv_events", "kv_events_replay"):
        address = getattr(backend, key)
        if address not in (None, "off") and not _ENDPOINT.fullmatch(address):
            problems.append(f"{key}: must be tcp://host:port, or off, not {address!r}")
    if backend.url.lower().startswith("http:"):
        odd = [key for key in _OF_TLS if getattr(backend, key) is not None]
        problems += [f"{key}: means nothing for http; the url must begin with https://" for key in odd]
    if backend.tls_key_file is not None and backend.tls_cert_file is None:
        problems.append("tls_key_file: needs tls_cert_file, whose key it is")
    return problems


def source_problems(sources: Iterable[SourceConfig]) -> list[str]:
    """One line for each source that cannot be asked."""
    problems = []
    names: set[str] = set()
    for index, source in enumerate(sources):
        here = f"settings: sources.{index}"
        what = _address_problem(source)
        if what is not None:
            problems.append(f"{here}.url: {what}, not {source.url!r}")
            continue
        name = source.name or source.url
        if name in names:
            problems.append(f"{here}: {name} is given twice; give each source a name of its own")
        names.add(name)
        scheme = source.url.partition(":")[0]
        odd = [key for key in _OF_KUBERNETES if getattr(source, key) is not None and scheme != KUBERNETES]
        odd += ["nameservers"] if source.nameservers and scheme not in (DNS, SRV) else []
        if source.api_server is not None and (what := _url_problem(source.api_server)) is not None:
            problems.append(f"{here}.api_server: {what}")
        problems += [f"{here}.{key}: means nothing for {scheme}:" for key in odd]
        problems += [
            f"{here}.nameservers: must be an address or address:port, not {server!r}"
            for server in source.nameservers
            if not _is_nameserver(server)
        ]
        if source.backend.url or source.backend.name:
            problems.append(f"{here}.backend: holds what is true of all engines found, so no url and no name")
    return problems


def _address_problem(source: SourceConfig) -> str | None:
    """What the address should have been."""
    try:
        parts = urlsplit(source.url)
        port = parts.port if parts.scheme in (DNS, SRV) else None
    except ValueError:
        return "must have a port between 1 and 65535"
    if port == 0:
        return "must have a port between 1 and 65535"
    if parts.scheme not in SCHEMES:
        return "must begin with file:, dns://, srv:// or kubernetes://"
    if parts.scheme == FILE:
        return None if parts.path and not parts.netloc else "must name a file, as in file:backends.yaml"
    if parts.scheme == KUBERNETES:
        service = parts.path.strip("/").partition(":")[0]
        named = bool(service) != (source.selector is not None)
        return None if named and "/" not in service else "must name one service, or have a selector instead"
    if not parts.hostname or parts.path.strip("/"):
        return "must name a host"
    if (parts.scheme == DNS) != (port is not None):
        return "must be dns://HOST:PORT" if parts.scheme == DNS else "must have no port: SRV records bring theirs"
    return None


def _is_nameserver(written: str) -> bool:
    """An address, in brackets or not, with or without a port."""
    host, _, port = written.rpartition(":")
    if written.endswith("]") or not (host.startswith("[") or (host and ":" not in host)):
        host, port = written, "53"
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16
