"""TLS on the data port, on real sockets: renewed without dropping a connection, closed to clients without papers."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.api.handler import DataHandler
from gateway.api.server import DataServer
from gateway.api.tls import ServerTls, TlsFiles
from tests.api.harness import Serving, Wire, post
from tests.certificates import make_authority, self_signed


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_authority(tmp_path_factory.mktemp("papers"), "first", "second", "client")


def _trust(papers: Path, client: str | None = None) -> ssl.SSLContext:
    trust = ssl.create_default_context(cafile=str(papers / "ca.pem"))
    if client is not None:
        trust.load_cert_chain(papers / f"{client}.pem", papers / f"{client}.key")
    return trust


@asynccontextmanager
async def _serving(tls: ServerTls) -> AsyncIterator[int]:
    state = Serving()
    server = DataServer(DataHandler(state.edge()), host="127.0.0.1", port=0, keepalive_timeout_s=5.0, tls=tls.context)
    try:
        yield await server.start()
    finally:
        await server.stop()
        state.slab.close()


async def _wire(port: int, trust: ssl.SSLContext) -> Wire:
    return Wire(*await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="localhost"))


def _shown(wire: Wire) -> str:
    return str(wire.writer.get_extra_info("peercert")["subject"])


async def test_a_renewed_certificate_is_for_handshakes_to_come(papers: Path, tmp_path: Path) -> None:
    for kind in ("pem", "key"):
        shutil.copy(papers / f"first.{kind}", tmp_path / f"used.{kind}")
    tls = ServerTls(TlsFiles(str(tmp_path / "used.pem"), str(tmp_path / "used.key")))
    async with _serving(tls) as port:
        before = await _wire(port, _trust(papers))
        assert "first" in _shown(before)
        for kind in ("pem", "key"):
            shutil.copy(papers / f"second.{kind}", tmp_path / f"used.{kind}")
        tls.check()
        tls.renew()
        after = await _wire(port, _trust(papers))
        assert "second" in _shown(after)
        for wire in (before, after):
            await wire.send(post())
            assert (await wire.answer()).status == 200
            wire.close()


async def test_clients_without_papers_are_not_let_in(papers: Path) -> None:
    files = TlsFiles(str(papers / "first.pem"), str(papers / "first.key"), str(papers / "ca.pem"), "1.3")
    async with _serving(ServerTls(files)) as port:
        known = await _wire(port, _trust(papers, "client"))
        await known.send(post())
        assert (await known.answer()).status == 200
        known.close()
        unknown = await _wire(port, _trust(papers))  # TLS 1.3 tells a client only with its first bytes
        with pytest.raises((ssl.SSLError, asyncio.IncompleteReadError, ConnectionError)):
            await unknown.answer()
        unknown.close()


async def test_old_versions_are_not_spoken(papers: Path) -> None:
    tls = ServerTls(TlsFiles(str(papers / "first.pem"), str(papers / "first.key"), min_version="1.3"))
    trust = _trust(papers)
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    async with _serving(tls) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await _wire(port, trust)


def test_files_that_cannot_be_used_are_told_by_name(papers: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"server\.tls_cert_file: .*gone\.pem"):
        ServerTls(TlsFiles(str(tmp_path / "gone.pem")))
    with pytest.raises(ValueError, match=r"server\.tls_cert_file"):
        ServerTls(TlsFiles(str(papers / "first.pem"), str(papers / "second.key")))
    with pytest.raises(ValueError, match=r"server\.tls_ciphers"):
        ServerTls(TlsFiles(str(papers / "first.pem"), str(papers / "first.key"), ciphers="none-such"))


def test_a_check_changes_nothing(tmp_path: Path) -> None:
    made = self_signed(tmp_path, "own")
    tls = ServerTls(TlsFiles(str(made.certificate), str(made.key)))
    made.certificate.write_text("rubbish")
    with pytest.raises(ValueError, match=r"server\.tls_cert_file"):
        tls.check()
    made.certificate.unlink()
    with pytest.raises(ValueError, match=r"No such file"):
        tls.check()
