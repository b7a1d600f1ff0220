"""Messages as a library's reader tells them, and codes that are never sent, told by one that may be."""

from __future__ import annotations

import aiohttp
import pytest

from gateway.types.websocket import Frame, FrameKind, received, told_code


@pytest.mark.parametrize(("code", "told"), [(1005, 1000), (1006, 1011), (1000, 1000), (4321, 4321)])
def test_a_code_as_the_other_side_hears_it(code: int, told: int) -> None:
    assert told_code(code) == told


def test_kinds_are_the_opcodes_that_the_library_sends_and_tells() -> None:
    assert {kind.name: kind.value for kind in FrameKind} == {
        name: aiohttp.WSMsgType[name].value for name in ("TEXT", "BINARY", "CLOSE", "PING", "PONG")
    }


@pytest.mark.parametrize(
    ("opcode", "data", "reason", "last_code", "frame"),
    [
        (1, "é", None, None, Frame(FrameKind.TEXT, b"\xc3\xa9")),
        (2, bytearray(b"\x00\xff"), None, None, Frame(FrameKind.BINARY, b"\x00\xff")),
        (9, b"?", None, None, Frame(FrameKind.PING, b"?")),
        (10, bytearray(), None, None, Frame(FrameKind.PONG, b"")),
        (8, 1001, "x", None, Frame(FrameKind.CLOSE, b"x", 1001)),
        (8, None, None, None, Frame(FrameKind.CLOSE, b"", 1005)),
    ],
)
def test_messages_of_every_kind(opcode: int, data: object, reason: object, last_code: int | None, frame: Frame) -> None:
    assert received(opcode, data, reason, last_code) == frame


def test_whatever_ends_a_connection_is_a_close() -> None:
    error = aiohttp.WebSocketError(1009, "too big")
    assert received(aiohttp.WSMsgType.ERROR, error, None, None) == Frame(FrameKind.CLOSE, b"", 1009)
    assert received(aiohttp.WSMsgType.ERROR, OSError(), None, None).code == 1006
    assert received(aiohttp.WSMsgType.CLOSED, None, None, 1001).code == 1001
    assert received(aiohttp.WSMsgType.CLOSED, None, None, None).code == 1006
