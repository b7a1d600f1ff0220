"""TLS on the data port: our certificate, whom we let in (mutual TLS), and a renewed certificate without a restart.

Decided here: how files become a context, and that renewed files are taken up by handshakes from then on, while
connections that are open stay as they are. Not decided here: which files (the settings), when (a reload). The list of
client authorities only grows while the process runs; to take one away, restart.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files and bounds. ``key`` may be in the certificate's file; ``ciphers`` as OpenSSL writes them (TLS 1.2)."""

    certificate: str
    key: str | None = None
    client_authorities: str | None = None
    min_version: str = "1.2"
    ciphers: str | None = None


class ServerTls:
    """The context of the data port. ``check`` and the constructor raise ValueError naming setting and file."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self.context = _made(files)

    def check(self) -> None:
        """Whether the files as they are now can be used; changes nothing."""
        _made(self._files)

    def renew(self) -> None:
        """Take up the files as they are now, for handshakes to come. Call after ``check``, on the loop."""
        _fill(self.context, self._files)


def _made(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[files.min_version]
    context.set_alpn_protocols(["http/1.1"])
    if files.ciphers is not None:
        try:
            context.set_ciphers(files.ciphers)
        except ssl.SSLError:
            raise ValueError(f"server.tls_ciphers: OpenSSL knows no cipher of {files.ciphers!r}") from None
    if files.client_authorities is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    _fill(context, files)
    return context


def _fill(context: ssl.SSLContext, files: TlsFiles) -> None:
    _load(
        "server.tls_cert_file", files.certificate, lambda path: context.load_cert_chain(path, files.key, _no_password)
    )
    if files.client_authorities is not None:
        _load("server.tls_client_ca_file", files.client_authorities, context.load_verify_locations)


def _no_password() -> str:
    """Instead of asking at the terminal, which a service has not got."""
    raise ValueError("server.tls_key_file: the key is encrypted; give it without a password")


def _load(setting: str, path: str, load: Callable[[str], None]) -> None:
    try:
        load(path)
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or str(error)
        raise ValueError(f"{setting}: {path} (or its key) cannot be used: {reason}") from None
