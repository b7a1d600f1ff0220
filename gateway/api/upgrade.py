"""The handshake of a WebSocket with a client (RFC 6455 §4.2): what is no handshake, and the answer to one that is.

Decided here: what a client must have asked, before any backend is, and the words in which it is refused; that what a
client offers as subprotocols is told to nobody. aiohttp would look at the request only when a backend has taken it,
cut the connection then, and write subprotocols to the log where none of them is chosen: browsers put keys there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from aiohttp import HttpVersion11, web
from multidict import CIMultiDict

from gateway.errors import InvalidRequest

_VERSION = "13"
_KEY_BYTES = 16
# RFC 6455 §1.3.
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def check_handshake(request: web.BaseRequest) -> None:
    """Raises InvalidRequest, the header named, for what asks for no WebSocket, or not as RFC 6455 has it."""
    headers = request.headers
    # Of several protocols aiohttp's parser switches to none, so one alone is taken.
    asks = _listed(request, "Upgrade") == ["websocket"] and "upgrade" in _listed(request, "Connection")
    if not asks or request.version < HttpVersion11:  # HTTP/1.0 knows no upgrade (RFC 9110 §7.8)
        told = "This path is a WebSocket; the request asked for no upgrade to one."
        raise InvalidRequest(told, part="Upgrade")
    if headers.get("Sec-WebSocket-Version", "").strip() != _VERSION:
        raise InvalidRequest(f"The only version spoken here is {_VERSION}.", part="Sec-WebSocket-Version")
    if not _is_key(headers.get("Sec-WebSocket-Key", "").strip()):
        raise InvalidRequest(f"It is no base64 of {_KEY_BYTES} bytes.", part="Sec-WebSocket-Key")


def _listed(request: web.BaseRequest, name: str) -> list[str]:
    return [item.strip().lower() for value in request.headers.getall(name, ()) for item in value.split(",")]


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):  # beyond ASCII
        return False


class Upgraded(web.WebSocketResponse):
    """The client's side of an opened conversation, under the subprotocol that the backend chose, if any."""

    def __init__(self, subprotocol: str | None, *, close_timeout_s: float, limit_bytes: int) -> None:
        super().__init__(
            timeout=close_timeout_s, autoclose=False, autoping=False, compress=False, max_msg_size=limit_bytes
        )
        self._subprotocol = subprotocol

    def _handshake(self, request: web.BaseRequest) -> tuple[CIMultiDict[str], str | None, int, bool]:
        """The answer's headers, subprotocol, window of compression, whether that lasts a message only."""
        digest = hashlib.sha1(request.headers["Sec-WebSocket-Key"].strip().encode() + _GUID, usedforsecurity=False)
        told = CIMultiDict(
            [
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                ("Sec-WebSocket-Accept", base64.b64encode(digest.digest()).decode()),
            ]
        )
        if self._subprotocol is not None:
            told["Sec-WebSocket-Protocol"] = self._subprotocol
        return told, self._subprotocol, 0, False
