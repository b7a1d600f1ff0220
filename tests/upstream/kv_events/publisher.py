"""A publisher of KV events as vLLM 0.32.0 is one (distributed/kv_events.py): PUB, and a ROUTER that repeats."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Self

import msgspec
import zmq

from gateway.types import KvEventSource

BLOCK_TOKENS = 4
_clock_s = 1000.0


def stored(tokens: Sequence[int], first: int = 0, **more: object) -> dict[str, Any]:
    """The event of a prompt's full blocks, from ``first`` on; a block's name is the sum of all up to its end."""
    blocks = [sum(tokens[: end + BLOCK_TOKENS]) + end for end in range(0, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS)]
    parent = blocks[first - 1] if first else None
    return {
        "type": "BlockStored", "block_hashes": blocks[first:], "parent_block_hash": parent,
        "token_ids": list(tokens[first * BLOCK_TOKENS : len(blocks) * BLOCK_TOKENS]), "block_size": BLOCK_TOKENS,
        "lora_id": None, "medium": "GPU", "lora_name": None, "extra_keys": [None] * len(blocks[first:]), "group_idx": 0,
        "kv_cache_spec_kind": "full_attention",
    } | more  # fmt: skip


def removed(tokens: Sequence[int], block: int) -> dict[str, Any]:
    """The event of one block's removal."""
    return {
        "type": "BlockRemoved",
        "block_hashes": [stored(tokens)["block_hashes"][block]],
        "medium": "GPU",
        "group_idx": 0,
    }


CLEARED: dict[str, Any] = {"type": "AllBlocksCleared"}


def packed(*events: dict[str, Any], rank: int | None = 0) -> bytes:
    """A payload; its clock goes on by one with each."""
    global _clock_s
    _clock_s += 1
    return msgspec.msgpack.encode([_clock_s, list(events), rank])


class Publisher:
    """Publishes from a thread of its own, so that replays are answered at any time."""

    def __init__(
        self, topic: bytes = b"kv", *, kept: int = 1000, answers: bool = True, port: int = 0, replay_port: int = 0
    ) -> None:
        self._topic = topic
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=kept)
        self._answers = answers
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._pub = self._context.socket(zmq.PUB)
        self._router = self._context.socket(zmq.ROUTER)
        self.endpoint = self._bound(self._pub, port)
        self.replay_endpoint = self._bound(self._router, replay_port)
        self._orders: deque[tuple[int, bytes, bool]] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.number = 0
        self.asked: list[int] = []

    @staticmethod
    def _bound(socket: zmq.Socket[bytes], port: int) -> str:
        socket.bind(f"tcp://127.0.0.1:{port or '*'}")
        return socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def source(self, *, replays: bool = True) -> KvEventSource:
        return KvEventSource(0, self.endpoint, self.replay_endpoint if replays else None, self._topic.decode())

    def connect(self, endpoint: str) -> None:
        """Publish to a subscriber that listens, before the thread begins."""
        self._pub.connect(endpoint)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._context.destroy(0)

    def publish(self, *events: dict[str, Any], lost: bool = False) -> int:
        """The next message; a lost one is only repeated. Returns its number."""
        return self.publish_raw(packed(*events), lost=lost)

    def publish_raw(self, payload: bytes, *, lost: bool = False) -> int:
        """A message whatever it says."""
        number = self.number
        self._orders.append((number, payload, lost))
        self.number += 1
        return number

    def send_frames(self, *frames: bytes) -> None:
        """Something that is no message at all; only while nothing is being published."""
        self._orders.append((-1, msgspec.msgpack.encode(list(frames)), False))

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._router.poll(0):
                self._repeat()
            while self._orders:
                number, payload, lost = self._orders.popleft()
                if number < 0:
                    self._pub.send_multipart(msgspec.msgpack.decode(payload, type=list[bytes]))
                    continue
                if not lost:
                    self._pub.send_multipart([self._topic, number.to_bytes(8, "big"), payload])
                self._kept.append((number, payload))
            time.sleep(0.001)

    def _repeat(self) -> None:
        client, _, start = self._router.recv_multipart()
        self.asked.append(int.from_bytes(start, "big"))
        if not self._answers:
            return
        for number, payload in self._kept:
            if number >= self.asked[-1]:
                self._router.send_multipart([client, b"", self._topic, number.to_bytes(8, "big"), payload])
        self._router.send_multipart([client, b"", b"", b"\xff" * 8, b""])
