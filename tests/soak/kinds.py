"""What clients do in a soak. Each kind is sent at a rate of its own, and knows which answers are right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL, chat, image_part
from tests.soak.site import HOST, MAIN, MAX_BODY_BYTES, RATED, TIGHT, Site

_CHAT = "/v1/chat/completions"
_FORMATS = ((".png", "png"), (".webp", "webp"), (".gif", "gif"), (".tif", "tiff"), (".bmp", "bmp"))
_TURNS = 8


@dataclass(frozen=True, slots=True)
class Kind:
    """``act`` gets the number of the act and returns what it saw; it must be one of ``expected``."""

    name: str
    every_s: float
    act: Callable[[int], Awaitable[str]]
    expected: frozenset[str]


class Clients:
    """Everybody who asks something of one site, over one pool of connections."""

    def __init__(self, site: Site, session: aiohttp.ClientSession) -> None:
        self._site = site
        self._session = session
        self._url = site.gateway.url
        large = data_url(drawn.photograph(3000, 2300))
        self._known = json.dumps(chat(image_part(large), "What is it?", max_tokens=4)).encode()
        self._turns: list[dict[str, Any]] = []
        self._refusals = self._all_refusals()

    def kinds(self) -> tuple[Kind, ...]:
        """All of them; about twelve acts a second together."""
        ok = frozenset({"200"})
        return (
            Kind("text", 0.25, self._text, ok),
            Kind("stream", 0.5, self._stream, ok),
            Kind("known image", 2.0, self._known_image, ok),
            Kind("fresh image", 0.8, self._fresh_image, ok),
            Kind("remote image", 1.6, self._remote_image, ok),
            Kind("turn", 1.0, self._turn, ok),
            Kind("other APIs", 1.0, self._other_api, ok),
            Kind("queue", 0.5, self._queue, ok),
            Kind("rate", 2.0, self._rate, frozenset({"200", "429 rate_limit_exceeded"})),
            Kind("refused", 0.4, self._refused, frozenset(what for what, _ in self._refusals)),
            Kind("left", 0.7, self._leave, frozenset({"left"})),
            Kind("websocket", 2.0, self._websocket, frozenset({"closed 1000"})),
            Kind("scrape", 1.5, self._scrape, ok),
            Kind("reload", 10.0, self._reload, ok),
        )

    async def _ask(
        self, path: str, body: Any, key: str = MAIN, method: str = "POST", headers: dict[str, str] | None = None
    ) -> str:
        data = body if isinstance(body, bytes | aiohttp.FormData) or body is None else json.dumps(body).encode()
        told = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **(headers or {})}
        async with self._session.request(method, f"{self._url}{path}", data=data, headers=told) as answer:
            text = await answer.read()
            code = answer.headers.get("x-vlmgw-error")
            in_stream = b'data: {"error"' in text
        return f"{answer.status}{f' {code}' if code else ''}{' with an error' if in_stream else ''}"

    async def _text(self, number: int) -> str:
        return await self._ask(_CHAT, chat(f"Number {number}. " * (1 + number % 40), max_tokens=8))

    async def _stream(self, number: int) -> str:
        asked = chat(f"Stream {number}", max_tokens=24, stream=True, stream_options={"include_usage": bool(number % 2)})
        return await self._ask(_CHAT, asked)

    async def _known_image(self, number: int) -> str:
        return await self._ask(_CHAT, self._known)

    async def _fresh_image(self, number: int) -> str:
        suffix, kind = _FORMATS[number % len(_FORMATS)]
        colour = (number & 255, number >> 8 & 255, 77)
        if kind == "bmp":
            picture = drawn.bmp(200 + number % 300, 240)
        else:
            picture = drawn.vips(drawn.plain(480, 360, colour), suffix)
        return await self._ask(_CHAT, chat(image_part(data_url(picture, f"image/{kind}")), "What?", max_tokens=4))

    async def _remote_image(self, number: int) -> str:
        """Every third one was fetched before."""
        name = f"{number % 3 and number:06d}"
        url = f"http://{HOST}:{self._site.origin_port}/{name}"
        return await self._ask(_CHAT, chat(image_part(url), "What?", max_tokens=4))

    async def _turn(self, number: int) -> str:
        """A conversation that grows by a turn, with an image in every other one, and then begins anew."""
        turn = number % _TURNS
        if turn == 0:
            self._turns = []
        parts: list[dict[str, object]] = [{"type": "text", "text": f"Turn {number}"}]
        if turn % 2 == 0:
            parts.append(image_part(data_url(drawn.jpeg(400, 300, (turn * 20, number & 255, number >> 8 & 255)))))
        self._turns.append({"role": "user", "content": parts})
        seen = await self._ask(_CHAT, {"model": MODEL, "messages": self._turns, "max_tokens": 4})
        self._turns.append({"role": "assistant", "content": f"Answer {number}"})
        return seen

    async def _other_api(self, number: int) -> str:
        messages = [{"role": "user", "content": f"Hello {number}"}]
        asks: tuple[tuple[str, Any], ...] = (
            ("/v1/messages", {"model": MODEL, "max_tokens": 4, "messages": messages, "stream": True}),
            ("/v1/responses", {"model": MODEL, "max_output_tokens": 16, "input": f"Hello {number}", "store": False}),
            ("/v1/completions", {"model": MODEL, "max_tokens": 4, "prompt": f"Hello {number}"}),
            ("/v1/estimate", chat(f"Hello {number}", max_tokens=4)),
        )
        return await self._ask(*asks[number % len(asks)])

    async def _queue(self, number: int) -> str:
        """One at a time for this tenant; the others wait for their turn."""
        return await self._ask(_CHAT, chat(f"Queue {number}", max_tokens=40), key=TIGHT)

    async def _rate(self, number: int) -> str:
        return await self._ask(_CHAT, chat(f"Rate {number}", max_tokens=2), key=RATED)

    async def _scrape(self, number: int) -> str:
        path = ("/metrics", "/metrics", "/-/config", "/readyz?verbose")[number % 4]
        async with self._session.get(f"{self._site.gateway.admin}{path}") as answer:
            await answer.read()
        return str(answer.status)

    async def _reload(self, number: int) -> str:
        self._site.reload_differently(number)
        async with self._session.post(f"{self._site.gateway.admin}/-/reload") as answer:
            await answer.read()
        return str(answer.status)

    async def _websocket(self, number: int) -> str:
        headers = {"Authorization": f"Bearer {MAIN}"}
        async with self._session.ws_connect(f"{self._url}/v1/realtime", headers=headers) as talk:
            await talk.receive()
            for size in (10, 4_000, 60_000):
                await talk.send_bytes(b"x" * size)
                if len((await talk.receive()).data) != size:
                    return "another message"
            await talk.send_str("bye 1000 enough")
            await talk.receive()
        return f"closed {talk.close_code}"

    # --- refused, one after the other ------------------------------------------------------------------------------

    async def _refused(self, number: int) -> str:
        wanted, act = self._refusals[number % len(self._refusals)]
        seen = await act()
        return wanted if seen == wanted else f"{seen} instead of {wanted}"

    def _all_refusals(self) -> tuple[tuple[str, Callable[[], Awaitable[str]]], ...]:
        def asks(body: Any, path: str = _CHAT, **how: Any) -> Callable[[], Awaitable[str]]:
            return lambda: self._ask(path, body, **how)

        def image(source: str, count: int = 1) -> Callable[[], Awaitable[str]]:
            return asks(chat(*[image_part(source)] * count, max_tokens=2))

        picture = data_url(drawn.png(64, 64), "image/png")
        cut = data_url(drawn.photograph(300, 200)[:2_000])
        bomb = data_url(_bomb(), "image/png")
        gone = f"http://{HOST}:{self._site.origin_port}/gone"
        return (
            ("401 unauthenticated", asks(chat("hi"), key="vgw-nobody-0123456789")),
            ("404 model_not_found", asks({**chat("hi"), "model": "nobody/nothing"})),
            ("404 route_not_found", asks(chat("hi"), "/v1/nowhere")),
            ("405 method_not_allowed", asks(None, method="DELETE")),
            ("400 not_json", asks(b'{"model": ')),
            ("400 invalid_request", asks({"model": MODEL, "messages": "no"})),
            ("400 too_complex", asks(b'{"a":' + b"[" * 2_000 + b"]" * 2_000 + b"}")),
            ("400 too_many_images", image(picture, 5)),
            ("400 image_undecodable", image("data:image/png;base64,AAAA")),
            ("400 image_undecodable", image(cut)),
            ("400 image_too_large", image(bomb)),
            ("415 image_format_unsupported", image("data:image/svg+xml,%3Csvg%20xmlns='a'/%3E")),
            ("403 source_blocked", image("http://127.0.0.2/secret.png")),
            ("424 source_failed", image(gone)),
            ("415 unsupported_content_encoding", asks(b"x", headers={"Content-Encoding": "gzip"})),
            ("413 body_too_large", lambda: self._raw(_head(MAX_BODY_BYTES + 1))),
            ("400 malformed", lambda: self._raw(b"\x16\x03\x01\x02\x00rubbish\r\n\r\n")),
            ("400 malformed", lambda: self._raw(_head(None) + b"zz\r\n")),
            ("431 header_too_large", lambda: self._raw(b"GET /health HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n")),
        )

    async def _raw(self, data: bytes) -> str:
        """Bytes that no client library sends; the status and code of what comes back."""
        reader, writer = await self._connected()
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        await _closed(writer)
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        return f"{head.split(' ')[1]} {lines.get('x-vlmgw-error')}"

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self._url)
        return await asyncio.open_connection(address.hostname, address.port)

    # --- clients that leave ----------------------------------------------------------------------------------------

    async def _leave(self, number: int) -> str:
        """In the middle of a stream, of the engine's work, of an upload, of an image's preparation."""
        body = json.dumps(chat(f"Leaving {number}", max_tokens=400, stream=number % 4 == 0)).encode()
        if number % 4 == 3:
            body = self._known.replace(b"What is it?", f"Leaving {number}".encode())
        reader, writer = await self._connected()
        sent = body[: len(body) // 2] if number % 4 == 2 else body
        writer.write(_head(len(body)) + sent)
        await writer.drain()
        if number % 4 == 0:
            await reader.readuntil(b"data: ")
        writer.transport.abort()
        return "left"


def _bomb() -> bytes:
    """A PNG of 900 megapixels by its header, with as much data as might hold them."""
    drawing = drawn.huge_png_header(30_000, 30_000)
    data, end = 1 << 20, drawing.index(b"IDAT") - 4
    return drawing[:end] + data.to_bytes(4, "big") + b"IDAT" + bytes(data + 4) + drawing[-12:]


def _head(length: int | None) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = ("Host: soak", "Content-Type: application/json", f"Authorization: Bearer {MAIN}", framing)
    return "\r\n".join((f"POST {_CHAT} HTTP/1.1", *lines, "", "")).encode()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
