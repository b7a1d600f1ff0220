"""TLS towards engines: whom we trust there, and who we say we are (mutual TLS).

Decided here: how certificate files become a context, and what is said of files that cannot be used. Not decided here:
which backend has which files (the configuration). Names are always checked; there is no way to switch that off.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

from gateway.upstream.settings import BackendSettings


def context_of(backend: BackendSettings) -> ssl.SSLContext:
    """The context of one https backend; the system's authorities hold unless it names its own.

    Raises ValueError naming the backend and the file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if backend.tls_ca_file is None:
        context.load_default_certs()
    else:
        _load(backend, backend.tls_ca_file, context.load_verify_locations)
    if backend.tls_cert_file is not None:
        _load(backend, backend.tls_cert_file, lambda path: context.load_cert_chain(path, backend.tls_key_file))
    return context


class TlsContexts:
    """One context per set of certificate files, made when the first backend with them comes."""

    def __init__(self) -> None:
        self._made: dict[tuple[str | None, ...], ssl.SSLContext] = {}

    def of(self, backend: BackendSettings) -> ssl.SSLContext:
        """Raises ValueError, as ``context_of`` does."""
        files = (backend.tls_ca_file, backend.tls_cert_file, backend.tls_key_file)
        context = self._made.get(files)
        if context is None:
            context = self._made[files] = context_of(backend)
        return context


def _load(backend: BackendSettings, path: str, load: Callable[[str], None]) -> None:
    try:
        load(path)
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or str(error)
        raise ValueError(f"backend {backend.backend_name}: {path} cannot be used for TLS: {reason}") from None
