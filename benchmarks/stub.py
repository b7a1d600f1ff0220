"""A backend that costs next to nothing, so that what is measured is what stands in front of it.

A bare asyncio protocol: reads a request to its end (Content-Length or chunked), answers a fixed completion, answers the
probes of a gateway as vLLM does. Run as ``python -m benchmarks.stub``; prints its port as a JSON line.
"""

from __future__ import annotations

import asyncio
import json
import time

MODEL = "bench/Qwen3-VL-8B-Instruct"
_USAGE = {"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28}
_ANSWER = json.dumps({
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is a picture."}, "finish_reason": "stop"}],
    "usage": _USAGE,
}).encode()  # fmt: skip
_MODELS = json.dumps(
    {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "vllm", "max_model_len": 262144}],
    }
).encode()
GET_ANSWERS = {b"/v1/models": _MODELS, b"/version": b'{"version":"0.32.0"}', b"/health": b"", b"/metrics": b""}


def response(body: bytes, status: bytes = b"200 OK") -> bytes:
    """A whole answer of JSON."""
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
    return head + body


CHAT_ANSWER = response(_ANSWER)
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class _Stub(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._head = bytearray()
        self._left: int | None = None
        self._chunked_tail = b""
        self._events = 0

    def _send_event(self, left: int) -> None:
        """One event a millisecond, as a fast engine does."""
        assert self._transport is not None
        if self._transport.is_closing():
            return
        if not left:
            self._transport.write(b"0\r\n\r\n")
            return
        event = b'data: {"choices":[{"delta":{"content":"word"}}],"sent_ns":%d}\n\n' % time.monotonic_ns()
        self._transport.write(b"%x\r\n%s\r\n" % (len(event), event))
        asyncio.get_running_loop().call_later(0.001, self._send_event, left - 1)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._left is None and not self._chunked_tail:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return
            data = bytes(self._head[end + 4 :])
            self._begin(bytes(self._head[:end]))
        if self._left is not None:
            self._left -= len(data)
            if self._left <= 0:
                self._answer(CHAT_ANSWER)
        elif self._chunked_tail:
            self._chunked_tail = (self._chunked_tail + data)[-8:]
            if self._chunked_tail.endswith(b"0\r\n\r\n"):
                self._answer(CHAT_ANSWER)

    def _begin(self, head: bytes) -> None:
        line, _, rest = head.partition(b"\r\n")
        method, path, _ = line.split(b" ", 2)
        if method == b"GET":
            body = GET_ANSWERS.get(path.partition(b"?")[0])
            self._answer(response(b"{}", b"404 Not Found") if body is None else response(body))
            return
        lower = rest.lower()
        wanted = lower.find(b"x-bench-events:")
        self._events = int(lower[wanted + 15 :].split(b"\r\n", 1)[0]) if wanted >= 0 else 0
        at = lower.find(b"content-length:")
        if at >= 0:
            self._left = int(lower[at + 15 :].split(b"\r\n", 1)[0])
        else:
            self._chunked_tail = b"-"

    def _answer(self, answer: bytes) -> None:
        assert self._transport is not None
        if self._events and answer is CHAT_ANSWER:
            self._transport.write(_STREAM)
            self._send_event(self._events)
        else:
            self._transport.write(answer)
        self._head.clear()
        self._left, self._chunked_tail = None, b""


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Stub, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
