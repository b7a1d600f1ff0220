"""A WebSocket from a client to a backend: the short way, as long as both talk.

Decided here: accept, reserve, decide, open, converse; of limits those on requests hold, for the whole conversation. A
client is answered 101 once the backend has taken it, so that a backend that does not is an HTTP error as anywhere else.
Not decided here: what messages mean, how they cross (the edge).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gateway.errors import NotTaken
from gateway.ferry import NO_COST, ask_on, reserve_unread, unread_policy
from gateway.ports import Client, UpstreamRequest
from gateway.record import ExchangeRecord
from gateway.routing.decide import decide
from gateway.stages import exchange as frame
from gateway.stages.elsewhere import go_on
from gateway.stages.exchange import Ports, Watch, World, conclude, new_record, note_caller
from gateway.stages.outgoing import forward_headers
from gateway.types import BackendName
from gateway.types.paths import Lane
from gateway.types.websocket import Frame


class Socket(Protocol):
    """One side of a conversation. Raises BackendLost or ConnectionError when it breaks off."""

    @property
    def subprotocol(self) -> str | None: ...
    async def receive(self, silence_s: float) -> Frame:
        """The next frame; a close at the end, whatever ended it. Raises TimeoutError after ``silence_s``."""
        ...

    async def send(self, frame: Frame) -> None:
        """Send on, waiting while the other side is slow."""
        ...

    async def close(self, code: int, reason: bytes = b"") -> None: ...


class OpenSocket(Protocol):
    """Open a backend's side. Raises NotTaken, BackendFailed (it answered with something else), BackendTimeout."""

    async def __call__(
        self, backend: BackendName, request: UpstreamRequest, subprotocols: Sequence[str], limit_bytes: int
    ) -> Socket: ...


class Talker(Client, Protocol):
    """A client that asked for a WebSocket."""

    @property
    def subprotocols(self) -> Sequence[str]: ...
    async def converse(self, other: Socket, lane: Lane) -> None:
        """Take the upgrade and relay both ways until one side closes. Raises BackendLost, once the client was told."""
        ...


async def talk(client: Talker, name: str, ports: Ports, world: World, lane: Lane, open_socket: OpenSocket) -> None:
    """Take one WebSocket through. ``name`` labels it in metrics."""
    record = new_record(client, name, ports.clock)
    await conclude(client, ports, record, _stages(client, ports, world, record, lane, open_socket))


async def _stages(
    client: Talker, ports: Ports, world: World, record: ExchangeRecord, lane: Lane, open_socket: OpenSocket
) -> None:
    watch = Watch(ports.clock, record)
    caller = world.admit(client.head)
    note_caller(record, caller)
    watch.lap("accept")
    reservation = await reserve_unread(ports, unread_policy(world, caller), record)
    try:
        await _carry(client, ports, world, record, lane, open_socket)
        watch.lap("relay")
    finally:
        if reservation is not None:
            reservation.release()


async def _carry(
    client: Talker, ports: Ports, world: World, record: ExchangeRecord, lane: Lane, open_socket: OpenSocket
) -> None:
    head = client.head
    headers = forward_headers(head, keep_authorization=not world.has_tenants)
    request = UpstreamRequest("GET", head.path, head.query, headers, (), 0)
    ask = ask_on(lane, ports.upstream.views(), record.request_id)
    while True:
        views = ports.upstream.views()
        decision = decide(views, ask, ports.upstream.holdings(ask.key), world.routing)
        frame.note_decision(record, decision, next(view for view in views if view.name == decision.backend))
        account = ports.upstream.open_account(decision.backend, NO_COST)
        try:
            record.attempts += 1
            try:
                socket = await open_socket(decision.backend, request, client.subprotocols, lane.max_message_bytes)
            except NotTaken as refusal:
                ask, _ = go_on(refusal, decision.backend, ask, ports.upstream, record)
                continue
            record.status = 101
            record.first_byte_s = ports.clock.now_s()
            await client.converse(socket, lane)
            return
        finally:
            account.close()
