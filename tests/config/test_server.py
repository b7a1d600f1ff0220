"""The edge's defaults: closed to the network, nothing said of the hop, no web page let in."""

from __future__ import annotations

from gateway.config.server import ServerSettings
from gateway.config.settings import Settings


def test_defaults_open_nothing() -> None:
    server = Settings().server
    assert server == ServerSettings()
    assert (server.host, server.admin_host, server.tls_cert_file, server.unix_socket) == (
        "127.0.0.1", "127.0.0.1", None, None,
    )  # fmt: skip
    assert (server.forwarded_headers, server.via, server.cors_origins) == ("keep", None, ())
