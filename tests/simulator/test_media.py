from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.simulator.media import read_data_url, read_source
from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import EngineKind

VLLM, SGLANG = EngineKind.VLLM, EngineKind.SGLANG


@pytest.mark.parametrize(
    "url",
    ["data:image/jpeg;base64,AAEC", "data:text/plain;base64,AAEC", "data:;base64,AAEC", "DATA:image/png;base64,AAEC"],
)
async def test_the_media_type_does_not_matter(url: str) -> None:
    assert await read_source(url, VLLM) == b"\x00\x01\x02"


@pytest.mark.parametrize("payload", ["AAE\nC", "AA-_", "AAECA", "AAEC=", "A A=", "ÄÄÄÄ"])
@pytest.mark.parametrize("engine", [VLLM, SGLANG])
def test_base64_is_strict(payload: str, engine: EngineKind) -> None:
    with pytest.raises(Refusal, match="Non-base64 digit found") as caught:
        read_data_url(f"data:image/png;base64,{payload}", engine)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "url", ["data:image/svg+xml,<svg/>", "data:image/png;charset=utf-8;base64,AAEC", "data:image/png;Base64,AAEC"]
)
def test_any_other_coding_is_501_on_vllm(url: str) -> None:
    with pytest.raises(Refusal, match="Only base64 data URLs") as caught:
        read_data_url(url, VLLM)
    assert caught.value.status == 501


@pytest.mark.parametrize(
    ("url", "engine", "status"),
    [
        ("data:image/png;base64", VLLM, 400),
        ("file:///etc/hostname", VLLM, 500),
        ("file:///etc/hostname", SGLANG, 400),
        ("ftp://example.test/a.png", VLLM, 400),
        ("AAEC", VLLM, 400),
        ("http://", VLLM, 400),
    ],
)
async def test_what_cannot_be_read_has_the_engines_status(url: str, engine: EngineKind, status: int) -> None:
    with pytest.raises(Refusal) as caught:
        await read_source(url, engine)
    assert caught.value.status == status


async def test_sglang_takes_bare_base64() -> None:
    assert await read_source("AAEC", SGLANG) == b"\x00\x01\x02"


@asynccontextmanager
async def _origin(answer: bytes) -> AsyncIterator[str]:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a.jpg"


def _response(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


async def test_a_remote_picture_is_fetched() -> None:
    async with _origin(_response("200 OK", b"bytes")) as url:
        assert await read_source(url, VLLM) == b"bytes"


@pytest.mark.parametrize(
    ("answer", "engine", "status"),
    [
        (_response("404 Not Found", b""), VLLM, 422),
        (_response("429 Too Many Requests", b""), VLLM, 500),
        (_response("500 Internal Server Error", b""), VLLM, 500),
        (b"", VLLM, 500),
        (_response("404 Not Found", b""), SGLANG, 400),
    ],
)
async def test_a_failing_origin_has_the_engines_status(answer: bytes, engine: EngineKind, status: int) -> None:
    async with _origin(answer) as url:
        with pytest.raises(Refusal) as caught:
            await read_source(url, engine)
    assert caught.value.status == status
