"""Messages of a WebSocket (RFC 6455), as they cross the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

# Codes that are never sent, but say how a connection ended (RFC 6455 §7.4.1), and what stands for them.
NO_CODE, ABNORMAL = 1005, 1006
NORMAL, GOING_AWAY, TOO_BIG, INTERNAL = 1000, 1001, 1009, 1011


class FrameKind(IntEnum):
    """The opcodes of RFC 6455 §5.2."""

    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


_OPCODES = frozenset(FrameKind)


@dataclass(frozen=True, slots=True)
class Frame:
    """One message, or what stands between two. ``code`` is a close's; ``data`` then is its reason."""

    kind: FrameKind
    data: bytes = b""
    code: int = NO_CODE


def received(opcode: int, data: object, reason: object, last_code: int | None) -> Frame:
    """A message as the library's reader tells it; whatever is none of the RFC's ends the connection: a close.

    ``data`` is text, bytes, a close's code or the reader's error with the ``code`` it closes with; ``last_code`` is
    what the connection was closed with, where it is known.
    """
    if opcode not in _OPCODES:
        return Frame(FrameKind.CLOSE, b"", getattr(data, "code", None) or last_code or ABNORMAL)
    if isinstance(data, str):
        return Frame(FrameKind(opcode), data.encode())
    if isinstance(data, bytes | bytearray):
        return Frame(FrameKind(opcode), bytes(data))
    return Frame(FrameKind.CLOSE, str(reason or "").encode(), data if isinstance(data, int) and data else NO_CODE)


def told_code(code: int) -> int:
    """What the other side is told of a close with ``code``."""
    return {NO_CODE: NORMAL, ABNORMAL: INTERNAL}.get(code, code)
