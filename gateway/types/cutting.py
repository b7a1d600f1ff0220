"""Cutting a connection at once, and what still lies unsent in it, whatever became of it before.

Decided here: that a TLS connection which was closed twice is cut already. CPython's asyncio (seen in 3.11,
``sslproto._SSLProtocolTransport.close``) lets go of its machinery then, and later calls are AttributeErrors; aiohttp
closes once where it cannot read an answer, and once where the connection is given back.
"""

from __future__ import annotations

from typing import Protocol


class Cuttable(Protocol):
    """Of an ``asyncio.Transport`` what is used here."""

    def abort(self) -> None: ...

    def get_write_buffer_size(self) -> int: ...


def cut_off(transport: Cuttable | None) -> None:
    """Cut it, unsent bytes included. Safe to repeat."""
    if transport is not None and not _is_let_go(transport):
        transport.abort()


def unsent_bytes(transport: Cuttable | None) -> int:
    """What the kernel has not taken yet."""
    return 0 if transport is None or _is_let_go(transport) else transport.get_write_buffer_size()


def _is_let_go(transport: Cuttable) -> bool:
    return getattr(transport, "_ssl_protocol", transport) is None
