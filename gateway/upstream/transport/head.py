"""The head of a request as it goes out, and where it goes: written once, by us, with what we were given and no more.

Decided here: framing (a length where it is known, chunks where it is not), and that ``Host`` comes first. Not decided
here: which headers there are (``upstream.headers``).
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from gateway.ports import UpstreamRequest
from gateway.types import HeaderList
from gateway.types.lines import head_bytes
from gateway.upstream.transport.upload import Upload

_NO_LENGTH_NEEDED = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


@dataclass(frozen=True, slots=True)
class Site:
    """Where connections to a backend lead: its ``Host`` header, the path before every target, and what the pool keys
    connections by."""

    host: str
    prefix: str
    request: aiohttp.ClientRequest

    @classmethod
    def of(cls, root: str, *, tls: ssl.SSLContext | bool, server_name: str | None) -> Site:
        """Raises RuntimeError outside a loop."""
        url = URL(root, encoded=True)
        request = aiohttp.ClientRequest(
            "GET", url, loop=asyncio.get_running_loop(), ssl=tls, server_hostname=server_name
        )
        return cls(request.headers["Host"], url.raw_path.rstrip("/"), request)


def written_head(request: UpstreamRequest, site: Site, headers: HeaderList, upload: Upload | None) -> bytes:
    """The head's bytes. Raises ValueError for control characters, which would make two headers of one."""
    query = f"?{request.query}" if request.query else ""
    lines = [f"{request.method} {site.prefix}{request.path}{query} HTTP/1.1", f"Host: {site.host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if upload is not None:
        lines.append("Transfer-Encoding: chunked" if upload.size is None else f"Content-Length: {upload.size}")
    elif request.method not in _NO_LENGTH_NEEDED:
        lines.append("Content-Length: 0")
    return head_bytes(lines)


def send_bodiless(protocol: ResponseHandler, head: bytes) -> None:
    """Send a request that is nothing but its head. Raises ConnectionError, with nothing sent, on a lost connection."""
    transport = protocol.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the connection was closed")
    transport.write(head)
