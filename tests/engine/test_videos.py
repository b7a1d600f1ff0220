"""Videos as frames: what the gateway samples costs what it said, in an engine that knows nothing of our arithmetic."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.engine.chat import Answer, ask
from tests.engine.conftest import FRAMES_TASK, Site
from tests.engine.pictures import drawn, jpeg
from tests.media.video.clips import Shape, clip

# The last one is longer than the 32 frames that vLLM takes of a list.
CLIPS = {
    "mp4": Shape(),
    "webm": Shape(frames=100, width=320, height=176),
    "mov": Shape(frames=30, width=144, height=256, frames_per_s=10),
    "avi": Shape(frames=480, width=64, height=64),
}


def video_body(model: str, *urls: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "video_url", "video_url": {"url": url}} for url in urls]
    parts.append({"type": "text", "text": "What happens?"})
    return {"model": model, "messages": [{"role": "user", "content": parts}], "max_tokens": 1, "temperature": 0}


def inline(kind: str) -> str:
    return f"data:video/{kind};base64,{base64.b64encode(clip(kind, CLIPS[kind])).decode()}"


def counts(answer: Answer) -> tuple[int, int]:
    """Ours, less the two markers of each video, and the engine's."""
    details = answer.document["usage"]["prompt_tokens_details"]["multimodal_tokens"]
    return int(answer.headers["x-vlmgw-video-tokens"]), int(details["video"])


@pytest.mark.parametrize("kind", CLIPS)
def test_sampled_frames_cost_what_was_said(site: Site, model: str, kind: str) -> None:
    ours, engines = counts(ask(site.gateway.url, video_body(model, inline(kind)), task=FRAMES_TASK))
    assert ours == engines + 2


def test_two_videos_of_one_request(site: Site, model: str) -> None:
    ours, engines = counts(ask(site.gateway.url, video_body(model, inline("mp4"), inline("mov")), task=FRAMES_TASK))
    assert ours == engines + 4


def test_a_clients_own_frames_are_counted_too(site: Site, model: str) -> None:
    frames = [base64.b64encode(jpeg(drawn(200, 120, seed=seed))).decode() for seed in range(5)]
    answer = ask(site.gateway.url, video_body(model, "data:video/jpeg;base64," + ",".join(frames)))
    ours, engines = counts(answer)
    assert ours == engines + 2
