"""Records what a real vLLM publishes about its KV blocks into tests/golden/kv_events.json, for tests without an engine.

usage: python -m tests.engine.record_kv_events [ENGINE_DIR]

Four prompts, the last one with a picture that has no id of ours, then as many more as it takes to evict blocks, then a
reset of the cache. Every frame is kept as it came, beside what the engine said of the prompts: token ids and usage.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import zmq

from tests.engine.kv_cases import BLOCK_FLAGS, CASES, Case, filler, kv_events_flag, messages_of
from tests.engine.vllm import VllmServer

OUT = Path(__file__).parents[1] / "golden" / "kv_events.json"
QUIET_S = 2.0
Frames = list[bytes]


def drained(socket: zmq.Socket[bytes]) -> list[Frames]:
    """All messages until none came for a while."""
    found = []
    while socket.poll(int(QUIET_S * 1e3)):
        found.append(socket.recv_multipart())
    return found


def replayed(context: zmq.Context[zmq.Socket[bytes]], port: int, start: int) -> list[Frames]:
    """What the replay socket answers from `start` on, its end included."""
    socket = context.socket(zmq.DEALER)
    socket.connect(f"tcp://127.0.0.1:{port}")
    socket.send_multipart([b"", start.to_bytes(8, "big")])
    try:
        return drained(socket)
    finally:
        socket.close(0)


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request that must succeed."""
    response = httpx.post(url, json=body, timeout=120, trust_env=False)
    assert response.status_code == httpx.codes.OK, response.text
    answer: dict[str, Any] = response.json() if response.content else {}
    return answer


def spoken(server: VllmServer, case: Case) -> dict[str, Any]:
    """One prompt: its ids, and its usage when it is asked for the first and the second time."""
    asked = {"model": server.served_name, "messages": messages_of(case)}
    tokens = post(f"{server.url}/tokenize", asked)["tokens"]
    chat = asked | {"max_tokens": 1, "temperature": 0} | ({"cache_salt": case.salt} if case.salt else {})
    usages = [post(f"{server.url}/v1/chat/completions", chat)["usage"]["prompt_tokens_details"] for _ in range(2)]
    images = [{"uuid": uuid, "file": base64.b64encode(file).decode()} for uuid, file in case.images]
    cached = [usage["cached_tokens"] for usage in usages]
    return {"name": case.name, "token_ids": tokens, "images": images, "salt": case.salt, "cached_tokens": cached}


def encoded(messages: list[Frames]) -> list[list[str]]:
    """Frames as JSON can hold them."""
    return [[base64.b64encode(frame).decode() for frame in frames] for frames in messages]


def main(engine_dir: Path) -> None:
    """Start an engine, record, write."""
    os.environ["VLLM_SERVER_DEV_MODE"] = "1"
    server = VllmServer(engine_dir, "qwen3vl", "tiny", *BLOCK_FLAGS, kv_events_flag(5557, 5558))
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    live = context.socket(zmq.SUB)
    live.setsockopt(zmq.SUBSCRIBE, b"")
    live.connect("tcp://127.0.0.1:5557")
    try:
        server.begin()
        server.wait_healthy()
        time.sleep(1)  # a subscription has no acknowledgement
        root = httpx.get(f"{server.url}/v1/models", trust_env=False).json()["data"][0]["root"]
        sources = httpx.get(f"{server.url}/kv_event_sources", trust_env=False)
        prompts = [spoken(server, case) | {"frames": encoded(drained(live))} for case in CASES]
        for number in range(6):
            spoken(server, Case("filler", filler(number)))
        evicting = drained(live)
        post(f"{server.url}/reset_prefix_cache", {})
        spoken(server, CASES[0])
        cleared = drained(live)
        again = replayed(context, 5558, 0)
    finally:
        server.end()
        live.close(0)
        context.term()
    record = {
        "vllm": "0.32.0", "block_size": 32, "model_root": root,
        "sources": sources.json() if sources.status_code == httpx.codes.OK else sources.status_code,
        "prompts": prompts, "evicting": encoded(evicting), "cleared": encoded(cleared),
        "replay": [len(again), encoded(again[:1]), encoded(again[-1:])],
    }  # fmt: skip
    OUT.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{OUT}: {OUT.stat().st_size} bytes, {len(evicting)} evicting, {len(cleared)} after the reset")  # noqa: T201  # a command


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".engine").absolute())
