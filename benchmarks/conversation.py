"""A conversation about photographs, as a client that keeps no state sends it: every turn repeats the whole history.

Turns are built from pieces that are joined once, so that the asker spends little beside sending. Answers of earlier
turns are ours, not the model's, so that all contenders are asked the same.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import simplejpeg

from benchmarks.pictures import build

TURNS = 10
PICTURES = 5
WIDTH, HEIGHT = 4032, 3024


def photographs() -> list[bytes]:
    """Five different photographs of 12 megapixels, as a phone writes them: one whole, four out of a larger one."""
    known = {picture.name: picture.path.read_bytes() for picture in build()}
    pixels = simplejpeg.decode_jpeg(known["camera-48mp"], "RGB")
    corners = [(top, left) for top in (0, HEIGHT) for left in (0, WIDTH)]
    crops = [np.ascontiguousarray(pixels[top : top + HEIGHT, left : left + WIDTH]) for top, left in corners]
    return [known["phone-12mp"], *(simplejpeg.encode_jpeg(crop, 90, colorsubsampling="420") for crop in crops)]


def fresh(file: bytes, mark: str) -> str:
    """The photograph as a data URL that nobody has seen: bytes behind the end of a JPEG change nothing but its name."""
    return "data:image/jpeg;base64," + base64.b64encode(file + mark.encode()).decode()


def turn_body(model: str, urls: Sequence[str], turn: int, **fields: Any) -> bytes:
    """The request of one turn, counted from 0; the first turns each bring one of the pictures."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Answer in one sentence."}]
    for number in range(turn + 1):
        parts: list[dict[str, Any]] = [{"type": "text", "text": f"Question {number}: what stands out here?"}]
        if number < len(urls):
            parts.insert(0, {"type": "image_url", "image_url": {"url": f"@{number}"}})
        messages.append({"role": "user", "content": parts})
        if number < turn:
            messages.append({"role": "assistant", "content": f"Answer {number}: a wall, some light and much sky."})
    text = json.dumps({"model": model, "messages": messages, "temperature": 0, **fields})
    for number, url in enumerate(urls):
        text = text.replace(f'"@{number}"', f'"{url}"')
    return text.encode()


@dataclass(frozen=True, slots=True)
class Said:
    """A streamed answer: when its first token came, and what the engine counted."""

    first_token_s: float
    usage: dict[str, Any]
    headers: dict[str, str]


def ask_streaming(port: int, body: bytes) -> Said:
    """Send one turn over a connection of its own. Raises RuntimeError unless it was answered to the end."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.connect()
        began_s = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise RuntimeError(f"{response.status}: {response.read(400)!r}")
        first_token_s, usage = 0.0, None
        for event in _events(response):
            if not first_token_s and event.get("choices") and event["choices"][0]["delta"].get("content") is not None:
                first_token_s = time.perf_counter() - began_s
            usage = event.get("usage") or usage
        if usage is None:
            raise RuntimeError("the answer ended without usage")
        return Said(first_token_s, usage, {name.lower(): value for name, value in response.getheaders()})
    finally:
        connection.close()


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])
