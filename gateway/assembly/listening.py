"""From the server's settings to its listeners and their manners: TLS, Unix sockets, forwarding, CORS.

Decided here: which setting becomes which part. Not decided here: what the parts do (``api``), what is wrong with a
setting (``config.listener``).
"""

from __future__ import annotations

from pathlib import Path

from gateway.api.cors import Cors
from gateway.api.extra_routes import ExtraRoute, ExtraRoutes
from gateway.api.forwarding import Forwarding
from gateway.api.handler import DataHandler
from gateway.api.server import DataServer
from gateway.api.tls import ServerTls, TlsFiles
from gateway.api.unix_socket import UnixListener
from gateway.config.listener import socket_mode
from gateway.config.settings import ServerSettings, Settings
from gateway.types import BackendName
from gateway.types.paths import Lane


def tls_of(server: ServerSettings) -> ServerTls | None:
    """TLS on the data port, where it is configured. Raises ValueError for files that cannot be used."""
    if server.tls_cert_file is None:
        return None
    return ServerTls(
        TlsFiles(
            server.tls_cert_file,
            server.tls_key_file,
            server.tls_client_ca_file,
            server.tls_min_version,
            server.tls_ciphers,
        )
    )


def watched_files(settings: Settings, config_file: Path | None) -> list[Path]:
    """Files and folders whose change is a reason to reload."""
    server = settings.server
    files = (
        settings.policies, config_file, server.tls_cert_file, server.tls_key_file, server.tls_client_ca_file
    )  # fmt: skip
    return [Path(file) for file in files if file is not None]


def data_server(server: ServerSettings, handler: DataHandler, tls: ServerTls | None) -> DataServer:
    """The data port, not yet listening. Raises OSError for a Unix socket that cannot be had."""
    unix = None
    if server.unix_socket is not None:
        unix = UnixListener(Path(server.unix_socket), socket_mode(server.unix_socket_mode))
    return DataServer(
        handler,
        host=server.host,
        port=server.port,
        keepalive_timeout_s=server.keepalive_timeout_s,
        reuse_port=server.processes > 1,
        tls=None if tls is None else tls.context,
        unix=unix,
        listens_on_tcp=server.tcp,
    )


def extra_routes_of(settings: Settings) -> ExtraRoutes | None:
    """The configured routes; ``None`` costs nothing."""
    routes = [
        ExtraRoute(
            path=each.path or each.prefix or "",
            methods=each.methods,
            is_websocket=each.websocket,
            is_prefix=each.path is None,
            lane=Lane(
                each.model,
                frozenset(BackendName(name) for name in each.backends),
                each.max_body_bytes,
                each.max_message_bytes,
                each.idle_timeout_s,
            ),
        )
        for each in settings.routes
    ]
    return ExtraRoutes(routes) if routes else None


def forwarding_of(server: ServerSettings) -> Forwarding | None:
    """What this hop says of itself; ``None`` costs nothing."""
    if server.forwarded_headers == "keep" and server.via is None:
        return None
    return Forwarding(server.forwarded_headers, server.via)


def cors_of(server: ServerSettings) -> Cors | None:
    """Cross-origin requests, where they are allowed; ``None`` costs nothing."""
    if not server.cors_origins:
        return None
    return Cors(frozenset(server.cors_origins), server.cors_credentials, server.cors_max_age_s)
