"""The prompts by which block hashes are held against an engine's own, and the flags of an engine that tells them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.engine.pictures import data_url, drawn, png

BLOCK_TOKENS = 32
# Few and small blocks: a recording stays short, and a handful of prompts evicts.
BLOCK_FLAGS = (
    "--block-size=32",
    "--max-model-len=2048",
    "--max-num-batched-tokens=2048",
    "--num-gpu-blocks-override=96",
    "--prefix-caching-hash-algo=sha256_cbor",
)
_LINE = "The quick brown fox jumps over the lazy dog near the river bank number {}. "


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt: pictures (with an id of ours or none), then a text."""

    name: str
    text: str
    images: tuple[tuple[str | None, bytes], ...] = ()
    salt: str | None = None


def kv_events_flag(port: int, replay_port: int, topic: str = "kv") -> str:
    """What makes an engine publish; it binds."""
    config = {
        "enable_kv_cache_events": True, "publisher": "zmq", "endpoint": f"tcp://*:{port}",
        "replay_endpoint": f"tcp://*:{replay_port}", "topic": topic,
    }  # fmt: skip
    return f"--kv-events-config={json.dumps(config)}"


def filler(number: int) -> str:
    """A text that shares no block with another number's."""
    return f"{number} " + "".join(_LINE.format(number * 1000 + line) for line in range(12))


def messages_of(case: Case) -> list[dict[str, Any]]:
    """One user message."""
    images: list[dict[str, Any]] = []
    for uuid, file in case.images:
        part: dict[str, Any] = {"type": "image_url", "image_url": {"url": data_url(file)}}
        images.append(part | ({"uuid": uuid} if uuid else {}))
    return [{"role": "user", "content": [*images, {"type": "text", "text": case.text}]}]


CASES = (
    Case("text", "".join(_LINE.format(line) for line in range(8))),
    Case("one image with a uuid", "What is in the image? " + _LINE.format(1), (("a1" * 16, png(drawn(320, 256))),)),
    Case(
        "two images and a salt",
        "Compare the images. " + _LINE.format(2),
        (("b2" * 16, png(drawn(256, 256, seed=7))), ("c3" * 16, png(drawn(288, 256, seed=9)))),
        salt="5a17",
    ),
    Case("an image without a uuid", "Describe. " + _LINE.format(3), ((None, png(drawn(256, 288, seed=11))),)),
)
