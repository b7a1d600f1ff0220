"""The settings of listeners and of the HTTP edge: the part ``server`` of gateway.yaml."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.config.declaring import setting


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Listeners and limits of the HTTP edge."""

    host: str = setting("127.0.0.1", "Address of the data port; 0.0.0.0 listens everywhere.")
    port: int = setting(8080, "Data port; 0 takes a free one.", minimum=0, maximum=65535)
    admin_host: str = setting("127.0.0.1", "Address of the admin port.")
    admin_port: int = setting(
        9464, "Admin port (/livez /readyz /metrics /-/...); 0 takes one.", minimum=0, maximum=65535
    )
    admin_page: bool = setting(True, "Whether the admin port has the page /ui; false leaves it 404.")
    processes: int = setting(
        1,
        "Gateway processes on this machine, which share the data port; process i has admin_port + i, and admin_port "
        "answers for all. Without Redis each decides by its part of every limit. media.workers is of all together, "
        "memory and caches are of each.",
        minimum=1,
        maximum=64,
    )
    max_body_bytes: int = setting(64 << 20, "Largest request body; larger ones are 413.", minimum=1024, unit="bytes")
    body_timeout_s: float = setting(60.0, "Longest silence of a client while its body is read.", minimum=0.1, unit="s")
    keepalive_timeout_s: float = setting(75.0, "How long an idle client connection stays open.", minimum=0, unit="s")
    tls_cert_file: str | None = setting(
        None, "Certificate with its chain (PEM): the data port then speaks TLS. Renewed files are taken up by a reload."
    )
    tls_key_file: str | None = setting(None, "The certificate's key (PEM), where it is not in the same file.")
    tls_client_ca_file: str | None = setting(
        None, "Authorities (PEM) that sign for clients; others are not let in (mutual TLS)."
    )
    tls_min_version: str = setting("1.2", "Oldest TLS version spoken.", choices=("1.2", "1.3"))
    tls_ciphers: str | None = setting(None, "Ciphers of TLS 1.2, as OpenSSL writes them; its defaults without it.")
    unix_socket: str | None = setting(None, "Path of a Unix socket to listen on as well.")
    unix_socket_mode: str = setting("0660", "Who may connect there, as chmod writes it.")
    tcp: bool = setting(True, "Whether the data port is opened at all; false leaves the Unix socket alone.")
    forwarded_headers: str = setting(
        "keep",
        "X-Forwarded-* and Forwarded towards engines: as they came (keep), with this hop behind them (append), of this "
        "hop alone (replace), none (remove).",
        choices=("keep", "append", "replace", "remove"),
    )
    via: str | None = setting(None, "Name of this hop in Via, of requests and answers; none is written without it.")
    cors_origins: tuple[str, ...] = setting(
        (), "Origins of web pages that may call (https://host), or *; none by default."
    )
    cors_credentials: bool = setting(False, "Whether such pages may send cookies and HTTP authentication.")
    cors_max_age_s: int = setting(600, "How long browsers may remember a preflight.", minimum=0, unit="s")
    keepalive_comment_s: float | None = setting(
        None, "Send an event-stream comment when a stream was silent this long; off by default.", minimum=0.1, unit="s"
    )
    settle_s: float = setting(
        5.0, "On SIGTERM, how long connections are still accepted while unready.", minimum=0, unit="s"
    )
    watch_interval_s: float = setting(
        2.0, "How often configuration and policy files are looked at for changes; 0 never.", minimum=0, unit="s"
    )
    drain_timeout_s: float = setting(90.0, "Then, how long requests in flight may take.", minimum=0, unit="s")
