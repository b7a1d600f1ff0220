"""Videos through the whole product: a gateway with real workers, a simulated vLLM that counts by its own arithmetic."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.processes import Engine, Gateway, until, write_policies
from tests.media.video.clips import Shape, clip
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

POLICY = """\
tasks:
  chat: {}
  frames: {video: frames}
  small: {video: frames, max_pixels: 20480}
  budget: {video: frames, max_video_tokens: 600}
  few: {video: frames, max_video_frames: 6}
  short: {max_video_s: 1}
"""
LONG = Shape(frames=240, width=320, height=192)
VIDEOS = {"mp4": clip("mp4", LONG), "webm": clip("webm"), "gif": clip("gif"), "avi": clip("avi"), "mov": clip("mov")}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    policies = write_policies(tmp_path_factory.mktemp("policies"), default=POLICY)
    with (
        Engine() as engine,
        Gateway("--backend", engine.url, "--policies", str(policies)) as running,
    ):
        yield running


def ask(gateway: Gateway, *urls: str, task: str = "chat") -> httpx.Response:
    parts: list[dict[str, Any]] = [{"type": "video_url", "video_url": {"url": url}} for url in urls]
    parts.append({"type": "text", "text": "What happens?"})
    return send(gateway, parts, task)


def send(gateway: Gateway, parts: list[dict[str, Any]], task: str = "chat") -> httpx.Response:
    body = {"model": MODEL, "messages": [{"role": "user", "content": parts}], "max_tokens": 2}
    return httpx.post(f"{gateway.url}/v1/chat/completions", json=body, headers={"x-vlmgw-task": task}, timeout=60)


def data_url(file: bytes, media_type: str = "video/mp4") -> str:
    return f"data:{media_type};base64,{base64.b64encode(file).decode()}"


def counts(answer: httpx.Response) -> tuple[int, int]:
    """Ours (with the two markers that stand around each video) and the engine's."""
    assert answer.status_code == 200, answer.text
    usage = answer.json()["usage"]
    return int(answer.headers["x-vlmgw-video-tokens"]), usage["prompt_tokens_details"]["multimodal_tokens"]["video"]


@pytest.mark.parametrize("kind", VIDEOS)
@pytest.mark.parametrize("task", ["chat", "frames"])
def test_our_count_is_the_engines(gateway: Gateway, kind: str, task: str) -> None:
    answer = ask(gateway, data_url(VIDEOS[kind]), task=task)
    ours, engines = counts(answer)
    assert ours == engines + 2
    done = "passed" if task == "chat" else "sampled"
    assert answer.headers["x-vlmgw-clips"] == f"video-{done}=1"


def test_caps_make_frames_smaller_or_fewer(gateway: Gateway) -> None:
    url = data_url(VIDEOS["mp4"])
    whole, _ = counts(ask(gateway, url, task="frames"))
    for task in ("small", "budget", "few"):
        ours, engines = counts(ask(gateway, url, task=task))
        assert ours == engines + 2
        assert ours < whole
    assert counts(ask(gateway, url, task="budget"))[0] <= 600


def test_two_videos_add_up_and_the_second_time_is_remembered(gateway: Gateway) -> None:
    urls = data_url(VIDEOS["mp4"]), data_url(VIDEOS["webm"])
    first = counts(ask(gateway, *urls, task="frames"))
    assert first[0] == first[1] + 4
    assert counts(ask(gateway, *urls, task="frames")) == first


def test_a_refusal_names_the_part_and_the_rule(gateway: Gateway) -> None:
    answer = ask(gateway, data_url(VIDEOS["mp4"]), task="short")
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("medium_too_long", "messages.0.content.0.video_url")
    broken = ask(gateway, data_url(b"\0\0\0\x18ftypisom" + bytes(500)), task="frames")
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "medium_undecodable")


def test_what_was_done_is_told(gateway: Gateway) -> None:
    ask(gateway, data_url(VIDEOS["mov"]), task="frames")

    def line(found: dict[str, Any]) -> bool:
        return found.get("event") == "exchange" and found.get("clips", {}).get("done") == {"video sampled": 1}

    told = gateway.line(line, "an access line about a sampled video")
    assert told["usage"]["video"] == told["clips"]["video_tokens"] - 2
    metrics = until(lambda: httpx.get(f"{gateway.admin}/metrics", timeout=10).text, "metrics")
    assert 'vlmgw_clips_total{action="sampled",kind="video"}' in metrics
    body = {"model": MODEL, "messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {
        "url": data_url(VIDEOS["mov"])}}]}]}  # fmt: skip
    explained = httpx.post(f"{gateway.url}/v1/estimate", content=json.dumps(body), timeout=60).json()
    (told_clip,) = explained["clips"]
    assert (told_clip["container"], told_clip["tokens"]) == ("mov", explained["estimate"]["video_tokens"])


def test_sounds_pass_within_their_limits(gateway: Gateway) -> None:
    part = {"type": "input_audio", "input_audio": {"data": "UklGRgAAAABXQVZF", "format": "wav"}}
    answer = send(gateway, [part] * 17)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_many_media")
    answer = send(gateway, [part])
    assert "At most 0 audio" in answer.json()["error"]["message"]  # the engine's own words: it got the part
