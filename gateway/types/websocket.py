"""Messages of a WebSocket (RFC 6455), as they cross the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# Codes that are never sent, but say how a connection ended (RFC 6455 §7.4.1), and what stands for them.
NO_CODE, ABNORMAL = 1005, 1006
NORMAL, GOING_AWAY, TOO_BIG, INTERNAL = 1000, 1001, 1009, 1011


class FrameKind(StrEnum):
    TEXT = "text"
    BINARY = "binary"
    PING = "ping"
    PONG = "pong"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Frame:
    """One message, or what stands between two. ``code`` is a close's; ``data`` then is its reason."""

    kind: FrameKind
    data: bytes = b""
    code: int = NO_CODE


def told_code(code: int) -> int:
    """What the other side is told of a close with ``code``."""
    return {NO_CODE: NORMAL, ABNORMAL: INTERNAL}.get(code, code)
