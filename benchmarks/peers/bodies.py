"""The requests: a short text, one photograph of 300 KB or 5 MB as base64, a stream, and small pictures by the dozen.

Photographs are drawn (noise at every scale, which compresses as one does), so that nothing is downloaded; sizes are
those of the base64 text in the body. Nothing here is random: two runs send the same bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import cache

import imagecodecs
import numpy as np

from benchmarks.drawing import draw_photo_like
from benchmarks.stub import MODEL

_DATA_URL = "data:image/jpeg;base64,"
_QUALITIES = (60, 70, 80, 85, 88, 90, 92, 94, 96, 98)
_COMMENT_BYTES = 18
# SOI, marker, length and comment: a multiple of 3 bytes, so that another comment is other base64 in the same place.
_PREFIX_BYTES = 2 + 2 + 2 + _COMMENT_BYTES


def _body(content: object, **fields: object) -> bytes:
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}).encode()


TEXT = json.dumps({
    "model": MODEL,
    "messages": [
        {"role": "system", "content": "You are a helpful assistant that answers briefly."},
        {"role": "user", "content": "Tell me in one sentence what a reverse proxy is. " * 8},
    ],
    "max_tokens": 16,
}).encode()  # fmt: skip


def stream(events: int, gap_us: int, **orders: int) -> bytes:
    """A request whose answer is a stream of so many events, so far apart."""
    asked = {"events": events, "gap_us": gap_us, **orders}
    words = " ".join(f"{name}={value}" for name, value in asked.items())
    return _body(f"Tell me a story. [[{words}]]", stream=True)


def with_comment(jpeg: bytes, number: int) -> bytes:
    """The same picture in another file: a comment stands behind the first marker."""
    comment = f"{number:0{_COMMENT_BYTES}d}".encode()
    return jpeg[:2] + b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment + jpeg[2:]


@cache
def photograph(base64_bytes: int) -> bytes:
    """A JPEG whose base64 is about so long."""
    wanted = base64_bytes * 3 // 4
    width = 4032 if wanted > 1_000_000 else 1280
    pixels = np.asarray(draw_photo_like(width, width * 3 // 4, seed=7))
    files = (bytes(imagecodecs.jpeg8_encode(pixels, level=quality)) for quality in _QUALITIES)
    return min(files, key=lambda file: abs(len(file) - wanted))


def image_body(jpeg: bytes, text: str = "What is in the picture?") -> bytes:
    """A chat request about one picture; its text stands behind it."""
    url = _DATA_URL + base64.b64encode(jpeg).decode()
    return _body([{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}], max_tokens=16)


def fresh_images(jpeg: bytes) -> Callable[[], bytes]:
    """Gives the body for a file that nobody has seen, each time another one."""
    body = bytearray(image_body(with_comment(jpeg, 0)))
    at = body.index(_DATA_URL.encode()) + len(_DATA_URL)
    count = 0

    def following() -> bytes:
        nonlocal count
        count += 1
        prefix = base64.b64encode(with_comment(jpeg[:2], count)[:_PREFIX_BYTES])
        body[at : at + len(prefix)] = prefix
        return bytes(body)

    return following


@cache
def small_pictures(count: int) -> tuple[bytes, ...]:
    """So many different JPEGs of 640 x 480."""
    drawn = (np.asarray(draw_photo_like(640, 480, seed=seed)) for seed in range(count))
    return tuple(bytes(imagecodecs.jpeg8_encode(pixels, level=80)) for pixels in drawn)
