"""What is wrong with the settings of the data port's listeners, and what their spellings mean.

Decided here: which settings need which others, and how a mode and an origin are written. Not decided here: whether
files can be used (``api.tls``, when it starts).
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from gateway.config.settings import ServerSettings

_LAST_PORT = 65535
_MODE = re.compile(r"^0?[0-7]{3}$")
# RFC 9110 §7.6.3: a host or a pseudonym.
_VIA = re.compile(r"^[A-Za-z0-9._:\[\]-]{1,64}$")


def socket_mode(written: str) -> int:
    """``0660`` -> 0o660. Raises ValueError."""
    if not _MODE.match(written):
        raise ValueError(f"must be three octal digits, as in 0660, not {written!r}")
    return int(written, 8)


def listener_problems(server: ServerSettings) -> list[str]:
    """One line each, as ``settings: where: what``."""
    problems = []
    if server.tls_cert_file is None:
        needless = ("tls_key_file", "tls_client_ca_file", "tls_ciphers")
        problems += [f"{name}: needs tls_cert_file" for name in needless if getattr(server, name) is not None]
    if not server.tcp and server.unix_socket is None:
        problems.append("tcp: false leaves no listener; name a unix_socket")
    if server.processes > 1 and server.unix_socket is not None:
        problems.append("processes: only one can listen on a unix_socket; several need the port")
    if server.processes > 1 and server.admin_port + server.processes > _LAST_PORT:
        problems.append(f"processes: process {server.processes} would have an admin port above {_LAST_PORT}")
    first, last = server.admin_port, server.admin_port + server.processes
    if server.processes > 1 and first and first < server.port <= last:
        problems.append(f"processes: {server.port} is the data port and an admin port ({first} to {last})")
    try:
        socket_mode(server.unix_socket_mode)
    except ValueError as error:
        problems.append(f"unix_socket_mode: {error}")
    if server.via is not None and not _VIA.match(server.via):
        problems.append(f"via: must be a host name or a pseudonym, not {server.via!r}")
    problems += [
        f"cors_origins: {_origin_problem(origin)}" for origin in server.cors_origins if _origin_problem(origin)
    ]
    if server.cors_credentials and "*" in server.cors_origins:
        problems.append("cors_credentials: browsers take no * with credentials; list the origins")
    return [f"settings: server.{problem}" for problem in problems]


def _origin_problem(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
        is_origin = bool(parts.scheme and parts.netloc) and origin == f"{parts.scheme}://{parts.netloc}"
    except ValueError:  # brackets that do not close
        is_origin = False
    if is_origin or origin in {"*", "null"}:
        return None
    return f"must be scheme://host[:port] as browsers send it, or *, not {origin!r}"
