"""The thread that listens to publishers: its sockets, and nothing that means anything. The only door to pyzmq.

A thread, since reading and applying events is work in proportion to what engines do, and nothing here waits for a
request. It never blocks on a publisher: what cannot be kept up with is dropped by ZeroMQ at ``_HIGH_WATER`` messages
and comes back as a gap. Connections are watched by ZeroMQ's own heartbeats (RFC 37): a publisher that died without a
word is noticed after 15 s.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import zmq
from zmq.utils.monitor import recv_monitor_message

from gateway.upstream.kv_events.feed import END_OF_REPLAY, Feed, State

# vLLM 0.32.0 publishes with the same limit.
_HIGH_WATER = 100_000
_LARGEST_BYTES = 64 << 20
_HEARTBEAT_MS, _SILENCE_MS = 5_000, 15_000
_RECONNECT_MS, _RECONNECT_LIMIT_MS = 100, 2_000
_POLL_MS = 50
# Messages taken from one socket before the next has its turn.
_TURN = 256
_NUMBER_BYTES = 8

_Socket = zmq.Socket[bytes]


@dataclass(slots=True, eq=False)
class Line:
    """One publisher's addresses and its feed. ``endpoint`` None: it connects to us, under ``topic``."""

    feed: Feed
    endpoint: str | None
    replay_endpoint: str | None
    topic: bytes
    rank: int
    sub: _Socket | None = field(default=None, repr=False)
    monitor: _Socket | None = field(default=None, repr=False)
    replay: _Socket | None = field(default=None, repr=False)


class Follower:
    """Owns one thread from ``start`` to ``stop``. It alone touches sockets and feeds; others leave it errands."""

    def __init__(self, listen: str | None, replay_deadline_s: float) -> None:
        self._listen = listen
        self._deadline_s = replay_deadline_s
        self._errands: deque[Callable[[], None]] = deque()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._lines: list[Line] = []
        self._named: dict[bytes, list[Line]] = {}
        self._context: zmq.Context[_Socket] = zmq.Context(io_threads=1)
        self._poller = zmq.Poller()
        self._handlers: dict[_Socket, Callable[[], None]] = {}
        self.strangers = 0
        self.bound: str | None = None

    def start(self) -> None:
        """Raises ValueError for an address that cannot be listened on."""
        if self._listen is not None:
            shared = self._subscriber(b"")
            try:
                shared.bind(self._listen)
            except zmq.ZMQError as error:
                self._context.destroy(0)
                raise ValueError(f"upstream.kv_events_listen: {self._listen}: {error}") from None
            self.bound = shared.getsockopt_string(zmq.LAST_ENDPOINT)
            self._on(shared, lambda: self._drain_shared(shared))
        self._thread = threading.Thread(target=self._run, name="kv-events", daemon=True)
        self._thread.start()

    def join(self, lines: Sequence[Line]) -> None:
        """Follow these too."""
        self._errands.append(lambda: self._join(lines))

    def leave(self, lines: Sequence[Line]) -> None:
        """Follow these no more."""
        self._errands.append(lambda: self._leave(lines))

    def doubt(self, lines: Sequence[Line]) -> None:
        """Their backend may have restarted: let them prove that they did not."""
        self._errands.append(lambda: self._doubt(lines))

    def stop(self) -> None:
        """End the thread; returns once it ended."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    # --- errands ---------------------------------------------------------------------------------------------------

    def _join(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._lines.append(line)
            if line.endpoint is None:
                self._named.setdefault(line.topic, []).append(line)
                continue
            try:
                self._connect(line, line.endpoint)
            except zmq.ZMQError:  # no address: it will never be fresh
                line.feed.ignored += 1

    def _leave(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._lines.remove(line)
            if line.endpoint is None:
                self._named[line.topic].remove(line)
            self._hang_up(line)
            if line.sub is not None:
                self._off(line.sub)
                line.sub.disable_monitor()
                line.sub.close(0)
            if line.monitor is not None:
                self._off(line.monitor)
                line.monitor.close(0)
            line.sub = line.monitor = None
            line.feed.closed()

    def _doubt(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if line.feed.connected or line.replay_endpoint is None:
                self._ask(line, line.feed.verify(time.monotonic()))

    # --- sockets ---------------------------------------------------------------------------------------------------

    def _subscriber(self, topic: bytes) -> _Socket:
        socket = self._socket(zmq.SUB)
        socket.setsockopt(zmq.RCVHWM, _HIGH_WATER)
        socket.setsockopt(zmq.SUBSCRIBE, topic)
        return socket

    def _socket(self, kind: int) -> _Socket:
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.IPV6, 1)
        socket.setsockopt(zmq.MAXMSGSIZE, _LARGEST_BYTES)
        socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, _SILENCE_MS)
        socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_LIMIT_MS)
        return socket

    def _on(self, socket: _Socket, handler: Callable[[], None]) -> None:
        self._poller.register(socket, zmq.POLLIN)
        self._handlers[socket] = handler

    def _off(self, socket: _Socket) -> None:
        self._poller.unregister(socket)
        del self._handlers[socket]

    def _connect(self, line: Line, endpoint: str) -> None:
        sub = self._subscriber(line.topic)
        monitor = sub.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        self._on(monitor, lambda: self._watch(line, monitor))
        self._on(sub, lambda: self._drain(line, sub))
        line.sub, line.monitor = sub, monitor
        sub.connect(endpoint)

    def _watch(self, line: Line, monitor: _Socket) -> None:
        while monitor.poll(0):
            event = recv_monitor_message(monitor, zmq.NOBLOCK)["event"]
            if event == zmq.EVENT_DISCONNECTED:
                line.feed.closed()
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._ask(line, line.feed.opened(time.monotonic()))

    def _ask(self, line: Line, start: int | None) -> None:
        """Ask for a replay on a socket of its own, so that no late answer to an earlier one comes between."""
        if start is None or line.replay_endpoint is None:
            return
        self._hang_up(line)
        replay = self._socket(zmq.DEALER)
        try:
            replay.connect(line.replay_endpoint)
            replay.send_multipart([b"", start.to_bytes(_NUMBER_BYTES, "big")], zmq.NOBLOCK)
        except zmq.ZMQError:  # no address: the deadline will say that no answer came
            replay.close(0)
            return
        self._on(replay, lambda: self._drain_replay(line, replay))
        line.replay = replay

    def _hang_up(self, line: Line) -> None:
        if line.replay is not None:
            self._off(line.replay)
            line.replay.close(0)
            line.replay = None

    # --- messages --------------------------------------------------------------------------------------------------

    def _drain(self, line: Line, sub: _Socket) -> None:
        for frames in _received(sub):
            read = _numbered(frames)
            if read is None:
                line.feed.ignored += 1
                continue
            self._ask(line, line.feed.live(*read, time.monotonic()))

    def _drain_shared(self, shared: _Socket) -> None:
        for frames in _received(shared):
            read = _numbered(frames)
            line = None if read is None else self._line_of(frames[0], read[1])
            if read is None or line is None:
                self.strangers += 1
                continue
            feed = line.feed
            if not feed.connected and feed.state is State.SILENT and line.replay_endpoint is not None:
                self._ask(line, feed.opened(time.monotonic()))
            self._ask(line, feed.live(*read, time.monotonic()))

    def _line_of(self, topic: bytes, payload: bytes) -> Line | None:
        lines = self._named.get(topic, ())
        rank = 0 if len(lines) == 1 else _rank_of(payload)
        return lines[rank] if rank < len(lines) else None

    def _drain_replay(self, line: Line, replay: _Socket) -> None:
        for frames in _received(replay):
            read = _numbered(frames)
            if read is None:
                line.feed.ignored += 1
                continue
            asked = line.feed.replayed(*read, time.monotonic())
            if asked is not None:
                self._ask(line, asked)
                return
            if line.feed.state is not State.REPLAYING:
                self._hang_up(line)
                return

    # --- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                for socket, _ in self._poller.poll(_POLL_MS):
                    handler = self._handlers.get(socket)
                    if handler is not None:  # a handler before this one may have closed it
                        handler()
                self._look_around()
        finally:
            self._close()

    def _look_around(self) -> None:
        while self._errands:
            self._errands.popleft()()
        now_s = time.monotonic()
        for line in self._lines:
            feed = line.feed
            if feed.state is State.REPLAYING and now_s - feed.replay_since_s > self._deadline_s:
                self._hang_up(line)
                self._ask(line, feed.gave_up(now_s))

    def _close(self) -> None:
        self._leave(list(self._lines))
        self._context.destroy(0)


def _received(socket: _Socket) -> list[list[bytes]]:
    """What lies ready, up to a turn's worth."""
    found: list[list[bytes]] = []
    try:
        while len(found) < _TURN:
            found.append(socket.recv_multipart(zmq.NOBLOCK))
    except zmq.Again:
        pass
    return found


def _numbered(frames: Sequence[bytes]) -> tuple[int, bytes] | None:
    """Number and payload: the last two of a message's frames, behind a topic or an empty one or both."""
    if not 2 <= len(frames) <= 4 or len(frames[-2]) != _NUMBER_BYTES:
        return None
    number = int.from_bytes(frames[-2], "big")
    return (number, frames[-1]) if number == END_OF_REPLAY or number < 1 << 62 else None


def _rank_of(payload: bytes) -> int:
    """The data-parallel rank with which a batch ends: in MessagePack, numbers below 128 are their own byte."""
    return payload[-1] if payload else 0
