"""What only the parts of ``redis.*`` together can be wrong about: address, mode, further nodes, files of TLS.

Decided here: which addresses are taken. Secrets are never repeated in a problem. Not decided here: how a connection is
made (``state.redis``).
"""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qs, urlsplit

from gateway.config.settings import IdentityConfig, MediaConfig, RedisConfig

_SCHEMES = ("redis", "rediss", "unix")


def shared_cache_problems(media: MediaConfig, redis: RedisConfig, identity: IdentityConfig) -> list[str]:
    """The same for prepared images in Redis, which need an address and a secret that all replicas know."""
    problems = []
    if media.shared_cache_url is not None:
        problems += [
            problem.replace("redis.url", "shared_cache_url") for problem in _url_problems(media.shared_cache_url)
        ]
    if media.shared_cache_bytes:
        if media.shared_cache_url is None and redis.url is None:
            problems.append("shared_cache_bytes: needs redis.url, or an address in shared_cache_url")
        if identity.secret is None:
            problems.append(
                "shared_cache_bytes: needs identity.secret, without which no process reads another's images"
            )
    return [f"settings: media.{problem}" for problem in problems]


def redis_problems(config: RedisConfig) -> list[str]:
    """One line for each mistake, ``settings: redis.…: what``; empty where no Redis is configured."""
    if config.url is None:
        return [] if not config.nodes else ["settings: redis.nodes: needs redis.url beside it"]
    problems = [*_url_problems(config.url), *_node_problems(config.nodes)]
    scheme = _split(config.url).scheme
    if config.mode != "standalone" and scheme == "unix":
        problems.append(f"redis.mode: a unix socket leads to one server, not to a {config.mode}")
    if config.mode == "standalone" and config.nodes:
        problems.append("redis.nodes: one server has no further nodes; set redis.mode to cluster or sentinel")
    if config.mode == "cluster" and _database(config.url) not in ("", "0"):
        problems.append("redis.url: a cluster has database 0 only")
    if config.password is not None and config.password_file is not None:
        problems.append("redis.password_file: stands beside redis.password; give one of them")
    if scheme != "rediss" and (config.tls_ca_file or config.tls_certificate_file or config.tls_key_file):
        problems.append("redis.tls_ca_file: TLS needs a rediss:// address")
    if (config.tls_certificate_file is None) != (config.tls_key_file is None):
        problems.append("redis.tls_certificate_file: certificate and key come together")
    if not config.prefix or any(c in config.prefix for c in "{}: "):
        problems.append("redis.prefix: must be a word without braces, colons and blanks")
    return [f"settings: {problem}" for problem in problems]


def _split(url: str) -> SplitResult:
    """An address in parts, all of them empty where it has none; ``_url_problems`` tells so."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _database(url: str) -> str:
    parts = _split(url)
    named = parse_qs(parts.query).get("db", [])
    return named[0] if named else "" if parts.scheme == "unix" else parts.path.strip("/")


def _url_problems(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        port_is_right = parts.scheme == "unix" or (parts.port or 6379) > 0
    except ValueError:  # a port that is none, brackets that do not close
        return ["redis.url: has no usable host and port"]
    if parts.scheme not in _SCHEMES:
        return [f"redis.url: must begin with redis://, rediss:// or unix://, not {parts.scheme or 'without a scheme'}"]
    if (parts.scheme == "unix" and not parts.path) or (parts.scheme != "unix" and not parts.hostname):
        return ["redis.url: names no host" if parts.scheme != "unix" else "redis.url: names no socket"]
    unknown = sorted(parse_qs(parts.query).keys() - {"db"})
    problems = [f"redis.url: unknown option {name}; use the settings redis.*" for name in unknown]
    if _database(url) and not _database(url).isdigit():
        problems.append("redis.url: the database must be a number")
    if not port_is_right:
        problems.append("redis.url: has no usable host and port")
    return problems


def _node_problems(nodes: tuple[str, ...]) -> list[str]:
    problems = []
    for index, node in enumerate(nodes):
        host, _, port = node.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            problems.append(f"redis.nodes.{index}: must be host:port, not {node!r}")
    return problems
