"""A red team at the fetcher's door: origins that lie, drip, pour, and point inwards."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from gateway.errors import BadMedia, SourceBlocked, SourceFailed, SourceTooLarge
from tests.certificates import self_signed
from tests.media.raw_origin import NAME, OWN_ADDRESS, PNG, Answer, fetcher, get, ok, origin, redirect

LINE = b"HTTP/1.1 200 OK\r\n"


async def endless_headers(writer: asyncio.StreamWriter) -> None:
    writer.write(LINE)
    while True:
        writer.write(b"X-Filler: " + b"x" * 4_000 + b"\r\n")
        await writer.drain()


async def endless_interim_answers(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 20)
        await writer.drain()


async def endless_chunk_extension(writer: asyncio.StreamWriter) -> None:
    writer.write(LINE + b"Transfer-Encoding: chunked\r\n\r\n1;")
    while True:
        writer.write(b"x" * 4_000)
        await writer.drain()


async def dripped_head(writer: asyncio.StreamWriter) -> None:
    for byte in LINE + b"X-Slow: " + b"x" * 100_000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.005)


async def one_byte_chunks(writer: asyncio.StreamWriter) -> None:
    writer.write(LINE + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\nx\r\n")
        await writer.drain()
        await asyncio.sleep(0.005)


async def redirect_with_endless_body(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 302 Found\r\nLocation: /fine\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1000\r\n" + b"x" * 4_096 + b"\r\n")
        await writer.drain()


ENDLESS: dict[str, Answer] = {
    "headers": endless_headers,
    "interim answers": endless_interim_answers,
    "chunk extension": endless_chunk_extension,
    "dripped head": dripped_head,
    "one-byte chunks": one_byte_chunks,
}


@pytest.mark.parametrize("attack", ENDLESS)
async def test_whatever_never_ends_is_left_and_its_connection_closed(attack: str) -> None:
    async with origin({"/x": ENDLESS[attack]}) as there, fetcher(total_timeout_s=0.3) as client:
        with pytest.raises((SourceFailed, SourceTooLarge)):
            await get(client, f"http://{NAME}:{there.port}/x")
        await asyncio.wait_for(there.gone.wait(), 30)


async def test_the_body_of_a_redirect_is_not_read() -> None:
    async with origin({"/x": redirect_with_endless_body, "/fine": ok()}) as there, fetcher() as client:
        assert await get(client, f"http://{NAME}:{there.port}/x") == PNG
        await asyncio.wait_for(there.gone.wait(), 30)


LIES = {
    "longer than sent": LINE + b"Content-Length: 500\r\n\r\n" + PNG,
    "negative length": LINE + b"Content-Length: -1\r\n\r\n" + PNG,
    "no number": LINE + b"Content-Length: 0x6c\r\n\r\n" + PNG,
    "two lengths": LINE + b"Content-Length: 3\r\nContent-Length: 108\r\n\r\n" + PNG,
    "list of lengths": LINE + b"Content-Length: 3, 108\r\n\r\n" + PNG,
    "bad chunk": LINE + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + PNG,
    "chunked cut": LINE + b"Transfer-Encoding: chunked\r\n\r\n6c\r\n" + PNG,
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/0.9": PNG,
    "nothing": b"",
    "status out of range": b"HTTP/1.1 999 Odd\r\nContent-Length: 108\r\n\r\n" + PNG,
    "gzip": ok(PNG, "Content-Encoding: gzip"),
    "nested gzip": ok(PNG, "Content-Encoding: identity, gzip"),
    "upgrade": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" + PNG,
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "partial": b"HTTP/1.1 206 Partial Content\r\nContent-Length: 108\r\nContent-Range: bytes 0-107/999\r\n\r\n" + PNG,
}


@pytest.mark.parametrize("lie", LIES)
async def test_lies_about_the_answer_fail_cleanly(lie: str) -> None:
    async with origin({"/x": LIES[lie]}) as there, fetcher(total_timeout_s=1.0) as client:
        with pytest.raises(SourceFailed):
            await get(client, f"http://{NAME}:{there.port}/x")


async def test_a_body_longer_than_its_length_ends_at_its_length() -> None:
    """What follows belongs to nobody: the connection is not used again."""
    answer = LINE + b"Content-Length: 108\r\n\r\n" + PNG + b"HTTP/1.1 200 OK\r\n"
    async with origin({"/x": answer}) as there, fetcher() as client:
        assert await get(client, f"http://{NAME}:{there.port}/x") == PNG


@asynccontextmanager
async def inner_service() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Something on loopback that must never be reached; it keeps what it hears."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1_000))
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heard
    finally:
        server.close()
        await server.wait_closed()


INWARDS = [
    "127.0.0.1",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0x7f.1",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1%25lo]",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "169.254.169.254",
    "user:pw@127.0.0.1",
    f"{NAME}@127.0.0.1",
    f"{NAME}%23@127.0.0.1",
    f"{NAME}\\@127.0.0.1",
]


@pytest.mark.parametrize("host", INWARDS)
async def test_no_spelling_leads_inwards_at_once_or_by_a_redirect(host: str) -> None:
    async with inner_service() as (port, heard), fetcher() as client:
        inner = f"http://{host}:{port}/latest/meta-data"
        with pytest.raises((SourceBlocked, BadMedia)):
            await get(client, inner)
        async with origin({"/r": redirect(inner)}) as there:
            with pytest.raises((SourceBlocked, BadMedia)):
                await get(client, f"http://{NAME}:{there.port}/r")
        assert heard == []


@pytest.mark.parametrize(
    "answers",
    [
        (("127.0.0.1",),),
        ((OWN_ADDRESS, "127.0.0.1"),),  # one inner address among good ones spoils all
        (("::ffff:127.0.0.1",),),
        (("fd00::1",),),
        ((OWN_ADDRESS,), ("127.0.0.1",)),  # good when first asked, inner when asked again
    ],
)
async def test_names_that_answer_with_inner_addresses(answers: tuple[tuple[str, ...], ...]) -> None:
    async with inner_service() as (port, heard), fetcher(hosts={"evil.test": answers}) as client:
        for _ in range(3):
            with pytest.raises((SourceBlocked, SourceFailed)):
                await get(client, f"http://evil.test:{port}/")
        assert heard == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x/a.png", "gopher://127.0.0.1:6379/_", "jar:http://x!/a", "http:///x", "//x/a"]
)
async def test_no_other_scheme_is_followed_after_a_redirect(url: str) -> None:
    async with origin({"/r": redirect(url)}) as there, fetcher() as client:
        with pytest.raises((SourceBlocked, SourceFailed)):
            await get(client, f"http://{NAME}:{there.port}/r")


@contextmanager
def proxy_variables(monkeypatch: pytest.MonkeyPatch, port: int) -> Iterator[None]:
    with monkeypatch.context() as patched:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            patched.setenv(name, f"http://127.0.0.1:{port}")
        yield


async def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would resolve the name again, out of our sight."""
    async with inner_service() as (port, heard), origin({"/x": ok()}) as there:
        with proxy_variables(monkeypatch, port):
            async with fetcher() as client:
                assert await get(client, f"http://{NAME}:{there.port}/x") == PNG
        assert heard == []


async def test_certificates_are_checked_against_the_name(tmp_path: Path) -> None:
    papers = self_signed(tmp_path, NAME, subject=f"DNS:{NAME}")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(papers.certificate, papers.key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ok())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, OWN_ADDRESS, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        async with fetcher(ca_file=str(papers.certificate), hosts={"other.test": ((OWN_ADDRESS,),)}) as client:
            assert await get(client, f"https://{NAME}:{port}/x") == PNG
            with pytest.raises(SourceFailed):
                await get(client, f"https://other.test:{port}/x")
        async with fetcher() as client:
            with pytest.raises(SourceFailed):
                await get(client, f"https://{NAME}:{port}/x")
    finally:
        server.close()
        await server.wait_closed()


async def test_authorities_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    for path in (broken, tmp_path / "missing.pem"):
        with pytest.raises(ValueError, match=r"fetch\.ca_file: .*\.pem"):
            async with fetcher(ca_file=str(path)):
                pass


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_unreachable_ports_take_no_descriptor() -> None:
    with socket.socket() as closed:
        closed.bind((OWN_ADDRESS, 0))
        port = closed.getsockname()[1]
        async with fetcher() as client:
            before = open_descriptors()
            for _ in range(20):
                with pytest.raises(SourceFailed):
                    await get(client, f"http://{NAME}:{port}/x")
            assert open_descriptors() <= before
