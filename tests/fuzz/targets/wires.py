"""Bytes from sockets: the data port's HTTP edge against h11, and what backends and Redis answer."""

from __future__ import annotations

import random
import re
from functools import cache

import h11

from gateway.api.client import HttpClient
from gateway.api.connection import Connections
from gateway.api.handler import DataHandler
from gateway.errors import BackendLost, BackendTimeout, NotTaken
from gateway.state.redis import RedisWire
from gateway.state.settings import RedisSettings
from gateway.state.wire import Command, Script, StoreUnavailable
from gateway.types import EngineKind
from gateway.upstream.registry import Backend
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.transport.exchange import Transport
from gateway.upstream.transport.response import EngineResponse
from tests.api.harness import Serving
from tests.fuzz.targets.plugs import Heard, Parrot, Plug, Stepped
from tests.fuzz.targets.target import Target
from tests.upstream.transport.wire import post, whole

# What the edge by itself may say; journeys of the test's own answer 200.
_STATUSES = {100, 200, 204, 400, 404, 405, 413, 415, 431}
_LIMIT_BYTES = 2048
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3}) [^\r\n]*\r\n")

# A request as it was read: method, target, body; no body where it did not come to its end.
_Read = tuple[str, str, bytes | None]


class _Edge:
    """The real handler on the real protocol, without a socket."""

    def __init__(self) -> None:
        self.loop = Stepped()
        self.heard = Heard("aiohttp.server")
        self.seen: list[_Read] = []
        self.server = self.loop.run_until_complete(self._made())

    async def _made(self) -> Connections:
        state = Serving(self._journey, body_silence_s=60.0)
        handler = DataHandler(state.edge())
        self.slab = state.slab
        return Connections(
            handler.handle, handler_cancellation=True, access_log=None, keepalive_timeout=75.0, read_bufsize=1 << 19,
            auto_decompress=False, max_headers=128,
        )  # fmt: skip

    async def _journey(self, client: HttpClient) -> None:
        place = len(self.seen)
        self.seen.append((client.head.method, client.head.path, None))
        body = await client.read(_LIMIT_BYTES)
        text = bytes(body.view(body.start, body.stop))
        body.close()
        self.seen[place] = (client.head.method, client.head.path, text)
        await client.start(200, (("Content-Type", "text/plain"),), len(text))
        await client.write(text)
        await client.finish()

    def answers(self, pieces: list[bytes]) -> tuple[bytes, list[_Read]]:
        """What one connection wrote, and which requests it read, until the client leaves."""
        self.seen.clear()
        connection = self.server()
        plug = Plug(self.loop, connection)
        connection.connection_made(plug)
        self.loop.settle()
        for piece in pieces:
            if plug.is_closing():
                break
            connection.data_received(piece)
            self.loop.settle()
        seen = list(self.seen)
        plug.close()
        self.loop.settle()
        assert not self.loop.uncaught, self.loop.uncaught
        assert not self.heard.records, self.heard.records
        assert self.slab.in_use_bytes == 0
        assert not self.server.connections
        return bytes(plug.written), seen

    def close(self) -> None:
        self.slab.close()
        self.loop.close()


_edge = cache(_Edge)


def http(data: bytes) -> None:
    """Every answer is whole HTTP with a documented status, and the requests are those that another parser reads."""
    edge = _edge()
    written, seen = edge.answers([data])
    _check_answers(written)
    pieces = _pieces(data)
    written, seen_in_pieces = edge.answers(pieces)
    _check_answers(written)
    for ours, again in zip(seen, seen_in_pieces, strict=False):
        assert ours[:2] == again[:2]
        assert ours[2] == again[2] or None in (ours[2], again[2])
    for ours, theirs in zip(seen_in_pieces, _by_h11(data), strict=False):
        assert ours[0] == theirs[0]
        assert ours[2] == theirs[2] or None in (ours[2], theirs[2]), (ours, theirs)


def _pieces(data: bytes) -> list[bytes]:
    rng = random.Random(data)
    at, pieces = 0, []
    while at < len(data):
        size = rng.choice((1, 8, 64, 64, 400))
        pieces.append(data[at : at + size])
        at += size
    return pieces


def _check_answers(written: bytes) -> None:
    at = 0
    while at < len(written):
        line = _STATUS_LINE.match(written, at)
        assert line is not None, written[at : at + 80]
        status = int(line[1])
        assert status in _STATUSES, written[at : at + 300]
        end = written.index(b"\r\n\r\n", at) + 4
        length = re.search(rb"\r\ncontent-length: (\d+)\r\n", written[at:end].lower())
        assert length is not None or status in {100, 204}, written[at:end]
        after = end + (int(length[1]) if length else 0)
        # An answer to HEAD announces a body that it does not carry.
        at = end if written.startswith(b"HTTP/1.", end) or end == len(written) else after
    assert at == len(written)


def _by_h11(data: bytes) -> list[_Read]:
    """The requests as h11 reads them, up to the first that it does not."""
    found: list[_Read] = []
    body = b""
    peer = h11.Connection(h11.SERVER)
    try:
        peer.receive_data(data)
        while True:
            event = peer.next_event()
            if isinstance(event, h11.Request):
                found.append((event.method.decode(), event.target.decode("latin-1"), None))
                body = b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found[-1] = (*found[-1][:2], body)
                peer.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                peer.send(h11.EndOfMessage())
                if peer.our_state is not h11.DONE:
                    return found
                peer.start_next_cycle()
            else:
                return found
    except (h11.ProtocolError, RuntimeError):
        return found


class _Engine:
    """A transport to a backend that answers one request with whatever is to be tried."""

    def __init__(self) -> None:
        self.loop = Stepped()
        self.parrot = Parrot()
        self.loop.run_until_complete(self._made())

    async def _made(self) -> None:
        await self.parrot.start()
        self.backends = []
        settings = [BackendSettings(f"unix://{self.parrot.path}", kind, kind) for kind in EngineKind]
        limits = UpstreamSettings(tuple(settings), response_timeout_s=5.0, idle_timeout_s=5.0)
        self.transport = Transport(limits)
        await self.transport.open()
        self.backends = [Backend(each, limits, lambda: None) for each in settings]

    async def ask(self, says: bytes, backend: Backend) -> None:
        self.parrot.says = says
        try:
            response = await self.transport.forward(backend, post(b'{"a":1}'))
        except NotTaken as refusal:
            if isinstance(refusal.response, EngineResponse):
                refusal.response.close()
            return
        except (BackendLost, BackendTimeout):
            return
        assert 200 <= response.status <= 999, response.status
        try:
            await whole(response)
        except (BackendLost, BackendTimeout):
            response.close()

    def close(self) -> None:
        self.loop.run_until_complete(self.transport.close())
        self.parrot.close()
        self.loop.settle()
        self.loop.close()


_engine = cache(_Engine)


def answers(data: bytes) -> None:
    """What a backend answers is relayed, or is one of the documented failures of a backend."""
    engine = _engine()
    backend = engine.backends[len(data) % len(engine.backends)]
    engine.loop.run_until_complete(engine.ask(data, backend))
    engine.loop.settle()
    assert not engine.loop.uncaught, engine.loop.uncaught


class _Store:
    """A connection to a Redis that says whatever is to be tried."""

    def __init__(self) -> None:
        self.loop = Stepped()
        self.parrot = Parrot()
        self.script = Script.of("fuzz", "return 1")
        self.loop.run_until_complete(self.parrot.start())
        self.wire = RedisWire(RedisSettings(f"unix://{self.parrot.path}", connect_timeout_s=5.0))

    async def ask(self, says: bytes) -> None:
        """A store that is taken for one and then says anything; or anything from the start, behind an exclamation."""
        parrot = self.parrot
        parrot.last = says.startswith(b"!")
        parrot.says = says[1:] if parrot.last else b"+OK\r\n"
        try:
            await self.wire.open()
            parrot.says, parrot.last = says, True
            await self.wire.carry([Command(("GET", "a")), Command.run(self.script, ["b"], 1)])
        except StoreUnavailable:
            pass
        finally:
            await self.wire.close()

    def close(self) -> None:
        self.parrot.close()
        self.loop.settle()
        self.loop.close()


_store = cache(_Store)


def close_all() -> None:
    """Give back what was opened for inputs so far."""
    for opened in (_edge, _engine, _store):
        if opened.cache_info().currsize:
            opened().close()
        opened.cache_clear()


def redis(data: bytes) -> None:
    """What a store says is replies, or a store that is not there."""
    store = _store()
    store.loop.run_until_complete(store.ask(data))
    store.loop.settle()
    assert not store.loop.uncaught, store.loop.uncaught


TARGETS = (
    Target(
        "http",
        "bytes at the data port: whole answers, and requests as h11 reads them",
        http,
        ("gateway.api",),
        largest_bytes=2048,
        replayed=120,
    ),
    Target(
        "answers",
        "bytes from a backend: relayed, or a backend's documented failure",
        answers,
        ("gateway.upstream.transport",),
        largest_bytes=2048,
        replayed=100,
    ),
    Target(
        "redis",
        "what a shared store may say",
        redis,
        (
            "gateway.state.redis",
            "gateway.state.wire",
        ),
        largest_bytes=512,
        replayed=100,
    ),
)
