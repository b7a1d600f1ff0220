"""A turn of a long conversation: ten images that the gateway has seen, 5 MB of body, against a bare relay of the same.

Counted is the CPU of all our processes (loop, admin thread, workers). The gateway receives as much as the relay and
forwards less, since it sends the prepared pictures.
"""

from __future__ import annotations

import base64
import io
import json
from typing import cast

import imagecodecs
import numpy as np
import simplejpeg

from benchmarks.contenders import measure, pin_apart, relay_and_gateway
from benchmarks.pictures import build, own_pictures
from benchmarks.stub import MODEL
from benchmarks.timing import Options, machine_facts

_IMAGES = 10
_BODY_BYTES = 5_000_000
_CAP_PIXELS = "1280x32x32"


def _photographs(options: Options) -> list[bytes]:
    """Ten different JPEGs that make a body of about 5 MB, cut from real photographs."""
    pictures = own_pictures(options.images) if options.images else build()
    photos = [picture for picture in pictures if picture.path.suffix in (".jpg", ".jpeg")]
    found: list[bytes] = []
    each_bytes = int(_BODY_BYTES * 3 / 4 / _IMAGES)
    for index in range(_IMAGES):
        pixels = simplejpeg.decode_jpeg(photos[index % len(photos)].path.read_bytes(), colorspace="RGB")
        height, width = pixels.shape[:2]
        side_w, side_h = min(2048, width), min(1536, height)
        left = (index * 97) % (width - side_w + 1)
        top = (index * 61) % (height - side_h + 1)
        crop = np.ascontiguousarray(pixels[top : top + side_h, left : left + side_w])
        found.append(
            min((_encoded(crop, quality) for quality in (70, 80, 85, 90, 95)), key=lambda f: abs(len(f) - each_bytes))
        )
    return found


def _encoded(pixels: np.ndarray, quality: int) -> bytes:
    return cast("bytes", imagecodecs.jpeg8_encode(pixels, level=quality))


def _body(files: list[bytes]) -> bytes:
    content: list[object] = [
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + base64.b64encode(file).decode()}}
        for file in files
    ]
    content.append({"type": "text", "text": "And what do you see now?"})
    text = io.StringIO()
    json.dump({"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 8}, text)
    return text.getvalue().encode()


def run(options: Options) -> dict[str, object]:
    """``cpu_ratio_to_relay``: CPU of all the gateway's processes over the relay's, per request, medians of one run."""
    body = _body(_photographs(options))
    with relay_and_gateway(("--max-pixels", _CAP_PIXELS)) as site:
        pinned = pin_apart(site.stub_pid, site.contenders)
        costs = measure(site.contenders, body, rounds=options.rounds or 15, per_round=10, warm_up=5)
    relay, gateway = costs["relay"], costs["gateway"]
    return {
        "cpu_ratio_to_relay": round(gateway.cpu_ms / relay.cpu_ms, 2),
        "images": _IMAGES,
        "body_bytes": len(body),
        "pinned": pinned,
        "costs": {name: cost.to_json() for name, cost in costs.items()},
        "machine": machine_facts(),
    }


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    costs = cast("dict[str, dict[str, float]]", report["costs"])
    lines = [f"{name:10} {cost['cpu_ms']:8.2f} CPU-ms  p50 {cost['p50_ms']:8.2f} ms" for name, cost in costs.items()]
    return [*lines, f"gateway / relay: {report['cpu_ratio_to_relay']} x CPU ({report['body_bytes']:,} bytes of body)"]
