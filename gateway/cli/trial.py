"""Generated pictures sent to an engine, and what it counted beside what we predicted. Part of ``doctor``.

Decided here: which sizes (small, square, wide, tall, off every grid) and what is compared: the image tokens that the
engine reports, else by how much its prompt grew over the same text alone. Not decided here: any prediction.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import httpx

from gateway.errors import GatewayError
from gateway.models.book import ServedModel
from gateway.types import BackendView, Size

SIZES = (Size(64, 64), Size(224, 224), Size(448, 448), Size(1280, 720), Size(720, 1280), Size(1001, 333))
_TIMEOUT_S = 120.0
_TEXT = {"type": "text", "text": "Hi"}


def trial_rows(view: BackendView, served: ServedModel, api_key: str | None) -> list[dict[str, object]]:
    """One row per size: predicted and actual tokens, or the error. Sends one request of text and one per picture."""
    headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
    with httpx.Client(base_url=view.url, timeout=_TIMEOUT_S, trust_env=False, headers=headers) as client:
        text = _usage(client, served.name, None)
        if isinstance(text, str):
            return [{"backend": view.name, "model": served.name, "size": "text", "error": text}]
        return [{"backend": view.name, "model": served.name} | _row(client, served, size, text) for size in SIZES]


def _row(client: httpx.Client, served: ServedModel, size: Size, text: dict[str, Any]) -> dict[str, object]:
    row: dict[str, object] = {"size": str(size)}
    try:
        price = served.family.image_tokens(size, served.checkpoint)
    except GatewayError as error:
        return row | {"error": error.code}
    usage = _usage(client, served.name, size)
    if isinstance(usage, str):
        return row | {"error": usage}
    details = usage.get("prompt_tokens_details")
    by_kind = details.get("multimodal_tokens") if isinstance(details, dict) else None
    reported = by_kind.get("image") if isinstance(by_kind, dict) else None
    if isinstance(reported, int) and not isinstance(reported, bool):
        predicted, actual = price.tokens, reported
    else:
        predicted, actual = price.prompt_tokens, int(usage["prompt_tokens"]) - int(text["prompt_tokens"])
    return row | {"predicted": predicted, "actual": actual, "agrees": predicted == actual}


def _usage(client: httpx.Client, model: str, size: Size | None) -> dict[str, Any] | str:
    """The engine's usage, or what went wrong in words."""
    content: list[dict[str, Any]] = [_TEXT]
    if size is not None:
        content.insert(0, {"type": "image_url", "image_url": {"url": drawn(size)}})
    body = {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 1}
    try:
        answer = client.post("/v1/chat/completions", json=body)
        usage = answer.json().get("usage") if answer.is_success else None
    except (httpx.HTTPError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(usage, dict) and isinstance(usage.get("prompt_tokens"), int):
        return usage
    return f"status {answer.status_code}" if answer.is_error else "no usage in the answer"


def drawn(size: Size) -> str:
    """A plain grey PNG as a data URL: what it costs depends on its size alone."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size.width, size.height, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\x80" * (3 * size.width)) * size.height
    png = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
