"""Mutual TLS towards engines, on real sockets: requests and probes alike."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.errors import BackendFailed, BackendLost
from gateway.ports import UpstreamRequest
from gateway.types import BackendName
from gateway.upstream.discover import Unanswered, fetch, probe_client
from gateway.upstream.registry import Backend
from gateway.upstream.service import UpstreamService
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.tls import context_of
from gateway.upstream.transport.exchange import Transport
from tests.certificates import Papers, self_signed
from tests.upstream.scripted import SteadyClock, json_response


@asynccontextmanager
async def engine(own: Papers, clients: Papers, answer: bytes | None = None) -> AsyncIterator[str]:
    """An engine that talks only to whom it knows."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.certificate, own.key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(clients.certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer or json_response(b"{}", extra="Connection: close\r\n"))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


async def asked(settings: BackendSettings) -> int:
    """The status of one request and one probe, which must agree."""
    # All probes are over before the end: one that is cancelled in its handshake leaves its socket to the collector.
    patient = UpstreamSettings(
        (settings,), discovery_timeout_s=20.0, probe_interval_s=3600.0, revival_interval_s=3600.0
    )
    service = UpstreamService(patient, SteadyClock())
    await service.start()
    try:
        response = await service.forward(BackendName("e"), UpstreamRequest("GET", "/v1/models", "", (), (), 0))
        while await response.chunk():
            pass
        response.close()
    finally:
        await service.stop()
    async with probe_client(5.0, context_of(settings)) as client:
        assert (await fetch(client, settings, "/health"))[0] == response.status
    return response.status


async def test_the_engine_is_shown_our_papers_and_shows_its_own(tmp_path: Path) -> None:
    engines, ours, strangers = (self_signed(tmp_path, name) for name in ("engine", "gateway", "stranger"))
    async with engine(engines, ours) as url:
        ca = str(engines.certificate)
        good = BackendSettings(
            url, "e", tls_ca_file=ca, tls_cert_file=str(ours.certificate), tls_key_file=str(ours.key)
        )
        assert await asked(good) == 200
        for bad in (
            BackendSettings(url, "e", tls_ca_file=ca),
            BackendSettings(
                url, "e", tls_ca_file=ca, tls_cert_file=str(strangers.certificate), tls_key_file=str(strangers.key)
            ),
            BackendSettings(url, "e", tls_cert_file=str(ours.certificate), tls_key_file=str(ours.key)),
        ):
            with pytest.raises(Exception) as failed:  # noqa: PT011 - which of the two the handshake's end decides
                await asked(bad)
            assert not isinstance(failed.value, AssertionError)
            async with probe_client(5.0, context_of(bad)) as client:
                with pytest.raises(Unanswered):
                    await fetch(client, bad, "/health")


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    ours = self_signed(tmp_path, "gateway")
    (tmp_path / "empty.pem").write_text("")
    for broken in (str(tmp_path / "empty.pem"), str(tmp_path / "missing.pem")):
        with pytest.raises(ValueError, match=rf"backend e: .*{Path(broken).name}"):
            context_of(BackendSettings("https://x", "e", tls_ca_file=broken))
    with pytest.raises(ValueError, match=r"backend e: .*gateway\.pem"):
        context_of(BackendSettings("https://x", "e", tls_cert_file=str(ours.certificate)))
    with pytest.raises(ValueError, match="https"):
        BackendSettings("http://x", "e", tls_ca_file="f")
    with pytest.raises(ValueError, match="tls_cert_file"):
        BackendSettings("https://x", "e", tls_key_file="f")


async def test_an_answer_that_is_none_is_the_engines_loss(tmp_path: Path) -> None:
    """aiohttp closes such a connection, and it is closed again when it is given back: nothing is left to cut."""
    own = self_signed(tmp_path, "engine")
    both = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    for answer in (both, b"no HTTP at all\r\n\r\n"):
        async with engine(own, own, answer) as url:
            certificate = str(own.certificate)
            settings = BackendSettings(
                url, "e", tls_ca_file=certificate, tls_cert_file=certificate, tls_key_file=str(own.key)
            )
            upstream = UpstreamSettings((settings,))
            transport = Transport(upstream)  # without the probes of a service
            await transport.open()
            try:
                request = UpstreamRequest("POST", "/v1/chat/completions", "", (), (b"{}",), 2)
                with pytest.raises(BackendLost):
                    await transport.forward(Backend(settings, upstream, lambda: None), request)
            finally:
                await transport.close()


async def test_conversations_look_for_the_name_that_requests_look_for(tmp_path: Path) -> None:
    own = self_signed(tmp_path, "engine", subject="DNS:engine.internal")
    certificate = str(own.certificate)
    async with engine(own, own, json_response(b"{}", "404 Not Found", extra="Connection: close\r\n")) as url:
        settings = BackendSettings(
            url,
            "e",
            tls_ca_file=certificate,
            tls_cert_file=certificate,
            tls_key_file=str(own.key),
            tls_server_name="engine.internal",
        )
        upstream = UpstreamSettings((settings,))
        transport = Transport(upstream)
        await transport.open()
        try:
            backend, request = Backend(settings, upstream, lambda: None), UpstreamRequest("GET", "/talk", "", (), (), 0)
            response = await transport.forward(backend, request)
            response.close()
            assert response.status == 404
            with pytest.raises(BackendFailed, match="status 404"):
                await transport.open_socket(backend, request, (), 1024)
        finally:
            await transport.close()


@pytest.mark.parametrize("body_bytes", [100_000, 3_000_000])
async def test_a_large_body_is_sent_whole_and_its_connection_used_again(tmp_path: Path, body_bytes: int) -> None:
    """Whatever is more than one write: asyncio's TLS is told otherwise than its TCP when to say that all is taken."""
    own = self_signed(tmp_path, "engine")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.certificate, own.key)
    received: list[int] = []
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                received.append(len(await reader.readexactly(body_bytes)))
                writer.write(json_response(b"{}"))
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    settings = BackendSettings(f"https://127.0.0.1:{port}", "e", tls_ca_file=str(own.certificate))
    upstream = UpstreamSettings((settings,), response_timeout_s=30.0)
    transport = Transport(upstream)
    await transport.open()
    request = UpstreamRequest("POST", "/v1/chat/completions", "", (), (bytes(body_bytes),), body_bytes)
    for _ in range(3):
        response = await transport.forward(Backend(settings, upstream, lambda: None), request)
        assert await response.chunk() == b"{}"
        response.close()
    await transport.close()
    server.close()
    await server.wait_closed()
    assert (received, len(connections)) == ([body_bytes] * 3, 1)
