"""What can be wrong with backends and sources of backends that no single value shows.

Decided here: which addresses are none, which names are given twice. Not decided here: whether anybody answers there.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from gateway.config.backends import BackendConfig, SourceConfig

# It stands in headers, logs and metrics.
NAME_LIMIT = 255
FILE, DNS, SRV, KUBERNETES = "file", "dns", "srv", "kubernetes"
SCHEMES = (FILE, DNS, SRV, KUBERNETES)
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
        name = name_of(backend)
        if not name.isprintable() or len(name) > NAME_LIMIT:
            problems.append(f"{here}.name: must be at most {NAME_LIMIT} printable characters, not {name!r:.80}")
        if name in names:
            problems.append(f"{here}: {name} is given twice; give each backend a name of its own")
        names.add(name)
    return problems


def _url_problem(url: str) -> str | None:
    """What the address of a backend should have been; never shown with its credentials."""
    should = "must be an http:// or https:// URL, or unix:///path"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"{should}: {error}"
    if parts.scheme == "unix" and not parts.netloc and len(parts.path) > 1:
        return None
    if "@" in parts.netloc:
        return "holds credentials; they belong into api_key"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"{should}, not {url!r}"
    if parts.query or parts.fragment:
        return f"{should} without ? and #, not {url!r}"
    return "must have a port between 1 and 65535" if port == 0 else None


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
        problems += [f"{here}.{key}: means nothing for {scheme}:" for key in odd]
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
