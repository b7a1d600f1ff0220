"""Grounding through the whole gateway: boxes come back in pixels of the photograph that was sent."""

from __future__ import annotations

import json

from tests.app.running import MODEL, running
from tests.app.test_app import small_png
from tests.upstream.scripted import answering, json_response

ANSWER = json.dumps(
    {"choices": [{"index": 0, "message": {"content": '[{"bbox_2d": [0, 250, 500, 1000]}]'}, "finish_reason": "stop"}],
     "usage": {"prompt_tokens": 80, "completion_tokens": 9, "total_tokens": 89}}
).encode()  # fmt: skip
CONTENT = [{"type": "image_url", "image_url": {"url": small_png()}}, {"type": "text", "text": "Where?"}]


async def test_boxes_come_back_as_pixels_of_the_original_for_those_who_ask() -> None:
    async with running(answering(json_response(ANSWER))) as gateway:
        body = {"model": MODEL, "messages": [{"role": "user", "content": CONTENT}]}
        plain = await gateway.data.post("/v1/chat/completions", json=body)
        assert plain.content == ANSWER
        assert "x-vlmgw-coordinates" not in plain.headers
        asked = {"x-vlmgw-coordinates": "original", "x-vlmgw-disclosure": "body"}
        answer = await gateway.data.post("/v1/chat/completions", json=body, headers=asked)
        assert answer.headers["x-vlmgw-coordinates"] == "original"
        told = answer.json()
        assert told["choices"][0]["message"]["content"] == '[{"bbox_2d": [0, 16, 32, 64]}]'
        assert told["vlmgw"]["coordinates"] == "original"
        assert told["vlmgw"]["images"][0]["original"] == [64, 64]
        assert told["usage"]["prompt_tokens"] == 80
        sent = gateway.engine.exchanges[-1]
        assert sent.headers("accept-encoding") == ["identity"]
        assert sent.headers("x-vlmgw-coordinates") == []
        refused = await gateway.data.post("/v1/chat/completions", json=body, headers={"x-vlmgw-coordinates": "mine"})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "x-vlmgw-coordinates"
