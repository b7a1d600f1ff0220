"""The backend that stands in for engines: fast, takes orders from the end of a request's body, remembers what it saw.

The same protocol as ``benchmarks.stub``, which takes its orders from a header; routers drop headers they do not know
and rewrite bodies, but all of them keep a user's words, so orders stand there: ``[[events=200 gap_us=1000]]``. Run as
``python -m benchmarks.peers.backend [PORT]``; prints its port as a JSON line.

Orders: ``events`` streams so many, ``gap_us`` apart (0: as fast as they can be written); ``cut`` ends the connection
without a word after so many; ``delay_ms`` waits before an answer; ``picture`` is noted and told at ``/bench/seen``.
``/bench/last`` tells the last small request as it arrived.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import cast

import uvloop

from benchmarks.stub import CHAT_ANSWER, GET_ANSWERS, MODEL, response

_ORDERS = re.compile(rb"\[\[([a-z_]+=\d+(?: [a-z_]+=\d+)*)\]\]")
_TAIL_BYTES = 8_192
_KEPT_BYTES = 65_536
_CHAT_PATH = b"/v1/chat/completions"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_LAST_EVENTS = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"%s","choices":'
    b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' % MODEL.encode(),
    b"data: [DONE]\n\n",
)


def orders(tail: bytes) -> dict[str, int]:
    """The orders at the end of a body; empty if it has none."""
    found = _ORDERS.search(tail)
    if found is None:
        return {}
    pairs = (each.partition("=") for each in found[1].decode().split(" "))
    return {name: int(value) for name, _, value in pairs}


class Memory:
    """What one backend has seen."""

    def __init__(self) -> None:
        self.pictures: list[int] = []
        self.head = b""
        self.body = b""

    def told(self, path: bytes) -> bytes | None:
        """The answer to a question of the benchmark's own."""
        if path == b"/bench/seen":
            return json.dumps(self.pictures).encode()
        if path == b"/bench/last":
            return json.dumps({"head": self.head.decode("latin-1"), "body": self.body.decode()}).encode()
        return None


def event() -> bytes:
    """One event of a stream as a chunk, with the time at which it was made."""
    text = (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"%s","choices":'
        b'[{"index":0,"delta":{"content":"word "},"finish_reason":null}],"sent_ns":%d}\n\n'
    ) % (MODEL.encode(), time.monotonic_ns())
    return _chunk(text)


def _chunk(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


class Backend(asyncio.Protocol):
    """One connection."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._transport: asyncio.Transport | None = None
        self._head = bytearray()
        self._body = bytearray()
        self._path = b""
        self._size = 0
        self._left: int | None = None
        self._chunked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's derives from none of asyncio's

    def data_received(self, data: bytes) -> None:
        if self._left is None and not self._chunked:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            data = bytes(self._head[end + 4 :])
            del self._head[end:]
            if self._begun():
                return
        self._size += len(data)
        self._body += data
        if self._size > _KEPT_BYTES:
            del self._body[:-_TAIL_BYTES]
        if self._left is not None:
            self._left -= len(data)
        if self._chunked:
            if self._body.endswith(b"0\r\n\r\n"):
                self._finished()
        elif self._left is not None and self._left <= 0:
            self._finished()

    def _begun(self) -> bool:
        """Read the head; ``True`` if it is answered with that."""
        line, _, rest = bytes(self._head).partition(b"\r\n")
        method, target, _ = line.split(b" ", 2)
        self._path = target.partition(b"?")[0]
        if method == b"GET":
            body = self._memory.told(self._path)
            body = GET_ANSWERS.get(self._path) if body is None else body
            self._write(response(b"{}", b"404 Not Found") if body is None else response(body))
            return True
        length = re.search(rb"\r\ncontent-length: *(\d+)", b"\r\n" + rest, re.IGNORECASE)
        self._left, self._chunked = (int(length[1]), False) if length else (None, True)
        return False

    def _finished(self) -> None:
        if self._path != _CHAT_PATH:
            self._write(response(b'{"detail":"Not Found"}', b"404 Not Found"))
            return
        asked = orders(bytes(self._body[-_TAIL_BYTES:]))
        if "picture" in asked:
            self._memory.pictures.append(asked["picture"])
        if self._size <= _KEPT_BYTES:
            self._memory.head, self._memory.body = bytes(self._head), bytes(self._body)
        if not asked:
            self._write(CHAT_ANSWER)
            return
        asyncio.get_running_loop().call_later(asked.get("delay_ms", 0) / 1000, self._carry_out, asked)

    def _carry_out(self, asked: dict[str, int]) -> None:
        if not asked.get("events"):
            self._write(CHAT_ANSWER)
            return
        assert self._transport is not None
        self._transport.write(_STREAM)
        self._send_event(asked, 0, asyncio.get_running_loop().time())

    def _send_event(self, asked: dict[str, int], count: int, began_s: float) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        if count == asked.get("cut", -1):
            self._transport.abort()
            return
        if count == asked["events"]:
            self._write(b"".join(_chunk(each) for each in _LAST_EVENTS) + b"0\r\n\r\n")
            return
        self._transport.write(event())
        loop = asyncio.get_running_loop()
        due_s = began_s + (count + 1) * asked.get("gap_us", 0) / 1e6
        if due_s <= loop.time():
            loop.call_soon(self._send_event, asked, count + 1, began_s)
        else:
            loop.call_at(due_s, self._send_event, asked, count + 1, began_s)

    def _write(self, answer: bytes) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(answer)
        self._head.clear()
        self._body.clear()
        self._size, self._left, self._chunked = 0, None, False


async def _serve(port: int) -> None:
    memory = Memory()
    server = await asyncio.get_running_loop().create_server(lambda: Backend(memory), "127.0.0.1", port)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
