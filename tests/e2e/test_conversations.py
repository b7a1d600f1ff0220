"""WebSockets and configured paths through the real gateway, to simulated engines."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import httpx
import pytest

from gateway.api.auth import hash_key
from tests.e2e.processes import DEADLINE_S, Engine, Gateway, write_policies
from tests.e2e.wires import connect

pytestmark = pytest.mark.slow
CONFIG = """
backends: [{{url: "{url}", name: one}}]
policies: policies
server: {{cors_origins: ["https://chat.example"]}}
routes:
  - {{path: /v1/realtime, websocket: true, backends: [one], max_message_bytes: 65536, idle_timeout_s: 60}}
  - {{prefix: /sim/, methods: [GET]}}
  - {{path: /version, methods: [GET]}}
"""
KEY = "sk-talking-0123456789abcdef"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("talking")
    write_policies(folder / "policies", team=f"tenant: team\nkeys: ['{hash_key(KEY)}']\n")
    (folder / "gateway.yaml").write_text(CONFIG.format(url=engine.url))
    with Gateway("--config", str(folder / "gateway.yaml")) as gateway:
        yield gateway


@pytest.fixture
async def session(gateway: Gateway) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(gateway.url, headers={"Authorization": f"Bearer {KEY}"}) as session:
        yield session


async def _greeted(talk: aiohttp.ClientWebSocketResponse) -> dict[str, object]:
    found: dict[str, object] = await talk.receive_json(timeout=DEADLINE_S)
    return found


async def test_a_page_of_another_origin_opens_no_conversation(gateway: Gateway, session: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect("/v1/realtime", origin="https://evil.example")
    assert refused.value.status == 403
    for allowed in (gateway.url, "https://chat.example"):
        async with session.ws_connect("/v1/realtime", origin=allowed) as talk:
            assert await _greeted(talk)


async def test_messages_cross_both_ways_with_the_subprotocol(session: aiohttp.ClientSession) -> None:
    async with session.ws_connect("/v1/realtime?model=x&y=%20", protocols=("other", "realtime")) as talk:
        assert talk.protocol == "realtime"
        assert talk._response.headers["Server"] == "vlm-gateway"
        assert talk._response.headers["x-request-id"]
        greeting = await _greeted(talk)
        assert greeting["path"] == "/v1/realtime?model=x&y=%20"
        assert greeting["authorization"] is None, "tenants' keys go no further"
        for text in ("hello", "é 東京 😀", ""):
            await talk.send_str(text)
            assert await talk.receive_str(timeout=DEADLINE_S) == text
        await talk.send_bytes(bytes(range(256)) * 200)
        assert await talk.receive_bytes(timeout=DEADLINE_S) == bytes(range(256)) * 200


async def test_pings_are_answered_by_the_engine(session: aiohttp.ClientSession) -> None:
    async with session.ws_connect("/v1/realtime", autoping=False) as talk:
        await _greeted(talk)
        await talk.ping(b"there?")
        pong = await talk.receive(timeout=DEADLINE_S)
        assert (pong.type, bytes(pong.data)) == (aiohttp.WSMsgType.PONG, b"there?")


async def test_a_close_keeps_its_code_and_reason(session: aiohttp.ClientSession) -> None:
    async with session.ws_connect("/v1/realtime", autoclose=False) as talk:
        await _greeted(talk)
        await talk.send_str("bye 4321 enough said")
        end = await talk.receive(timeout=DEADLINE_S)
        assert (end.type, end.data, end.extra) == (aiohttp.WSMsgType.CLOSE, 4321, "enough said")


async def test_a_message_over_the_limit_closes_with_1009(session: aiohttp.ClientSession) -> None:
    async with session.ws_connect("/v1/realtime", autoclose=False) as talk:
        await _greeted(talk)
        await talk.send_bytes(b"x" * 70_000)
        end = await talk.receive(timeout=DEADLINE_S)
        assert (end.type, end.data) == (aiohttp.WSMsgType.CLOSE, 1009)


async def test_a_client_that_reads_nothing_holds_the_engine_back(
    session: aiohttp.ClientSession, gateway: Gateway
) -> None:
    async with session.ws_connect("/v1/realtime") as talk:
        await _greeted(talk)
        connection = talk._conn
        assert connection is not None
        assert connection.transport is not None
        connection.transport.pause_reading()
        before = _memory(gateway)
        await talk.send_str("flood 2000 60000")  # 120 MB
        await asyncio.sleep(1.0)
        assert _memory(gateway) - before < 30_000_000


def _memory(gateway: Gateway) -> int:
    pages = int(Path(f"/proc/{gateway.pid}/statm").read_text().split()[1])
    return pages * 4096


async def test_who_leaves_is_forgotten_and_recorded(session: aiohttp.ClientSession, gateway: Gateway) -> None:
    talk = await session.ws_connect("/v1/realtime", headers={"x-request-id": "left-alone"})
    await _greeted(talk)
    assert gateway.metric("requests_inflight", dialect="websocket") >= 1
    connection = talk._conn
    assert connection is not None
    assert connection.transport is not None
    connection.transport.abort()
    line = await asyncio.to_thread(gateway.access_line, "left-alone")
    assert (line["dialect"], line["status"], line["tenant"], line["backend"]) == ("websocket", 101, "team", "one")


async def test_keys_are_asked_for_and_upgrades_too(gateway: Gateway, session: aiohttp.ClientSession) -> None:
    async with aiohttp.ClientSession(gateway.url) as stranger:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stranger.ws_connect("/v1/realtime")
        assert refused.value.status == 401
    async with session.get("/v1/realtime") as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["param"] == "Upgrade"


def test_configured_paths_pass_and_administration_does_not(gateway: Gateway) -> None:
    with httpx.Client(base_url=gateway.url, headers={"Authorization": f"Bearer {KEY}"}, trust_env=False) as client:
        assert "version" in client.get("/version").json()
        assert "in_flight" in client.get("/sim/state").json()
        assert client.post("/sim/state").status_code == 405
        for path in ("/metrics", "/sim/../metrics", "/sim/%2e%2e/metrics", "/sim//state", "/collective_rpc"):
            assert _raw_status(gateway, path) == 404, path


def _raw_status(gateway: Gateway, path: str) -> int:
    peer = connect(int(gateway.url.rsplit(":", 1)[1]))
    peer.send([f"GET {path} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()])
    answer = peer.message()
    peer.close()
    assert answer is not None
    return int(answer.first_line.split(b" ")[1])


def test_a_drain_says_goodbye(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIG.format(url=engine.url).replace("policies: policies\n", ""))
    with Gateway("--config", str(tmp_path / "gateway.yaml")) as gateway:

        async def stay() -> tuple[object, object]:
            async with (
                aiohttp.ClientSession(gateway.url) as session,
                session.ws_connect("/v1/realtime", autoclose=False) as talk,
            ):
                await _greeted(talk)
                gateway.signal(signal.SIGTERM)
                end = await talk.receive(timeout=DEADLINE_S)
                return end.data, end.extra

        assert asyncio.run(stay()) == (1001, "the gateway is leaving")
        assert gateway.wait() == 0


def test_a_backend_that_speaks_no_websocket_is_an_error_as_any(engine: Engine, tmp_path: Path) -> None:
    text = f'backends: ["{engine.url}"]\nroutes: [{{path: /v1/elsewhere, websocket: true}}]\n'
    (tmp_path / "gateway.yaml").write_text(text)
    with Gateway("--config", str(tmp_path / "gateway.yaml")) as gateway:

        async def ask() -> int:
            async with aiohttp.ClientSession(gateway.url) as session:
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await session.ws_connect("/v1/elsewhere")
                return refused.value.status

        assert asyncio.run(ask()) == 502
