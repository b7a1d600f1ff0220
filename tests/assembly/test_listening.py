"""A gateway on a Unix socket before an engine on another, with TLS that a reload renews: the real process."""

from __future__ import annotations

import shutil
import socket
import ssl
from pathlib import Path

import httpx
import pytest

from gateway.assembly.listening import cors_of, forwarding_of, tls_of, watched_files
from gateway.config.settings import ServerSettings, Settings
from tests.certificates import make_authority
from tests.e2e.processes import Gateway, until
from tests.simulator.process import SimulatorProcess, chat


def test_what_is_not_configured_costs_nothing() -> None:
    server = ServerSettings()
    assert (tls_of(server), forwarding_of(server), cors_of(server)) == (None, None, None)
    assert watched_files(Settings(), None) == []


@pytest.mark.slow
def test_sockets_on_both_sides_and_a_renewed_certificate(tmp_path: Path) -> None:
    papers = make_authority(tmp_path, "first", "second")
    used = [tmp_path / "used.pem", tmp_path / "used.key"]

    def use(name: str) -> None:
        for path in used:
            shutil.copy(papers / f"{name}{path.suffix}", path)

    use("first")
    front, back = tmp_path / "front.sock", tmp_path / "back.sock"
    environment = {
        "VLMGW_SERVER_UNIX_SOCKET": str(front),
        "VLMGW_SERVER_TLS_CERT_FILE": str(used[0]),
        "VLMGW_SERVER_TLS_KEY_FILE": str(used[1]),
        "VLMGW_SERVER_WATCH_INTERVAL_S": "0.05",
    }
    with (
        SimulatorProcess("--unix-socket", str(back)),
        Gateway("--backend", f"unix://{back}", environment=environment, socket=front) as gateway,
    ):
        with httpx.Client(
            transport=httpx.HTTPTransport(uds=str(front)), base_url="http://gateway", timeout=30
        ) as client:
            answer = client.post("/v1/chat/completions", json=chat("hi", max_tokens=1))
            assert answer.status_code == 200, answer.text
            assert answer.headers["x-vlmgw-backend"] == str(back)
            assert client.get("/v1/models").json()["data"], "probes reach it as well"
        trust = ssl.create_default_context(cafile=str(papers / "ca.pem"))
        port = int(gateway.url.rsplit(":", 1)[1])

        def shown() -> str:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
                trust.wrap_socket(plain, server_hostname="localhost") as secured,
            ):
                return str(secured.getpeercert())

        assert "first" in shown()
        use("second")
        until(lambda: "second" in shown(), "the renewed certificate")
    assert not front.exists()
