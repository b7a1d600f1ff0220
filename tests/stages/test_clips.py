"""The videos and sounds of a request, driven by hand through a whole journey."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.errors import GatewayError, MediumTooLarge
from gateway.journey import travel
from gateway.types import BackendView, EngineKind
from tests.journey.driver import drive
from tests.journey.fake_clips import clip_facts
from tests.journey.fakes import MODEL, Answer, Scene, view
from tests.journey.scenes import PLAIN, VIDEO_URL, Setting, clip_body
from tests.policy.examples import policy_set

REMOTE = "https://example.com/v.mp4"
SOUND = {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}


def rules(text: str) -> Any:
    return policy_set(default=f"rules: {{{text}}}\n")


def sent(setting: Setting, **changes: Any) -> tuple[Scene, dict[str, Any] | GatewayError]:
    """The scene afterwards, and the body that the backend got or the refusal that the client got."""
    scene = setting.scene()
    for name, value in changes.items():
        setattr(scene.clips, name, value)
    assert drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world())).escaped is None
    assert scene.books.still_open == []
    if scene.client.refusals:
        return scene, scene.client.refusals[0]
    body: dict[str, Any] = json.loads(scene.upstream.sent[0][2])
    return scene, body


def url_of(body: Any, index: int = 0) -> str:
    return str(body["messages"][0]["content"][index]["video_url"]["url"])


def test_a_file_is_passed_as_it_is_and_counted() -> None:
    scene, body = sent(Setting(clip_body(VIDEO_URL)))
    assert url_of(body) == VIDEO_URL
    assert scene.clips.jobs == []
    record = scene.record
    assert record.estimate is not None
    # Four frames of 320 x 240 in Qwen3-VL: two pairs of 80 tokens, their timestamps and markers, two around.
    assert record.estimate.video_tokens == record.video_tokens == 2 * (80 + 8) + 2
    assert record.clips == {("video", "passed"): 1}
    assert scene.upstream.learnt[0][1] == (clip_facts().placement,)
    assert scene.upstream.accounts[0][1].encode_patches == 2 * 320


def test_frames_take_the_files_place() -> None:
    scene, body = sent(Setting(clip_body(VIDEO_URL), policies=rules("video: frames, max_pixels: 20480")))
    assert url_of(body) == "data:video/jpeg;base64,QUJD"
    (job,) = scene.clips.jobs
    assert job.plan.indices == (0, 16, 31, 47)
    assert job.plan.target is not None
    assert job.plan.target.pixels <= 20480
    assert scene.record.clips == {("video", "sampled"): 1}
    headers = dict(scene.client.headers)
    assert headers["x-vlmgw-clips"] == "video-sampled=1"
    assert int(headers["x-vlmgw-video-tokens"]) == scene.record.video_tokens


def test_videos_share_a_token_budget() -> None:
    setting = Setting(clip_body(VIDEO_URL, VIDEO_URL + "QUJD"), policies=rules("video: frames, max_video_tokens: 150"))
    scene, _ = sent(setting)
    assert scene.record.video_tokens <= 150
    rejecting = rules("video: frames, max_video_tokens: 150, on_excess: reject")
    _, refusal = sent(replace(setting, policies=rejecting))
    assert isinstance(refusal, GatewayError)
    assert (refusal.code, refusal.rule) == ("too_many_tokens", "max_video_tokens")


def test_a_remote_file_is_inlined_and_a_remote_one_of_a_closed_policy_refused() -> None:
    setting = Setting(clip_body(REMOTE))
    scene, body = sent(setting, found=[clip_facts(remote=True)])
    assert url_of(body).startswith("data:")
    assert scene.record.clips == {("video", "inlined"): 1}
    closed = policy_set(default="hosts: none\n")
    _, refusal = sent(replace(setting, policies=closed))
    assert isinstance(refusal, GatewayError)
    assert (refusal.code, refusal.part) == ("source_blocked", "messages.0.content.0.video_url")


SGLANG: BackendView = replace(view("a"), engine=EngineKind.SGLANG)
LLAMA: BackendView = replace(view("a"), models=("meta-llama/Llama-4-Scout-17B-16E-Instruct",), model_root=None)


@pytest.mark.parametrize(
    ("text", "views", "found", "version", "code"),
    [
        ("video: frames", (SGLANG,), None, "v", "medium_unsupported"),
        ("video: frames", (view("a"),), None, None, "medium_unsupported"),
        ("video: frames", (view("a"),), clip_facts(flaw="medium_undecodable"), "v", "medium_undecodable"),
        ("video: frames", (view("a"),), clip_facts(flaw="medium_unsupported"), "v", "medium_unsupported"),
        ("max_video_s: 1", (view("a"),), None, "v", "medium_too_long"),
        ("max_video_s: 1", (view("a"),), clip_facts(flaw="medium_unsupported"), "v", "medium_unsupported"),
        ("max_video_frames: 2", (view("a"),), None, "v", "medium_too_large"),
        ("max_videos: 0", (view("a"),), None, "v", "too_many_media"),
    ],
)  # fmt: skip
def test_what_the_policy_asks_for_and_nobody_can_give_is_refused(
    text: str, views: tuple[BackendView, ...], found: Any, version: str | None, code: str
) -> None:
    changes = {"version": version} | ({} if found is None else {"found": [found]})
    _, refusal = sent(Setting(clip_body(VIDEO_URL), views=views, policies=rules(text)), **changes)
    assert isinstance(refusal, GatewayError)
    assert refusal.code == code
    assert refusal.part == "messages.0.content.0.video_url"


def test_a_model_of_unknown_ways_gets_files_but_no_frames() -> None:
    body = clip_body(VIDEO_URL).replace(MODEL.encode(), LLAMA.models[0].encode())
    scene, passed = sent(Setting(body, views=(LLAMA,)))
    assert url_of(passed) == VIDEO_URL
    assert scene.record.video_tokens == 0
    _, refusal = sent(Setting(body, views=(LLAMA,), policies=rules("video: frames")))
    assert isinstance(refusal, GatewayError)
    assert refusal.code == "medium_unsupported"


def test_what_nobody_asks_about_costs_no_look() -> None:
    scene, body = sent(Setting(clip_body(VIDEO_URL)), version=None)
    assert url_of(body) == VIDEO_URL
    assert scene.clips.refs == []
    content = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": [SOUND]}]}).encode()
    scene, _ = sent(Setting(content))
    assert scene.clips.refs == []
    scene, _ = sent(Setting(content, policies=rules("max_audio_s: 9")))
    assert [(ref.is_bare, ref.source) for ref in scene.clips.refs] == [(True, "QUJD")]


def test_shadow_reports_and_changes_nothing() -> None:
    shadow = policy_set(default="mode: shadow\nrules: {video: frames, max_video_s: 1}\n")
    scene, body = sent(Setting(clip_body(VIDEO_URL), policies=shadow))
    assert url_of(body) == VIDEO_URL
    assert scene.record.findings == ["medium_too_long:max_video_s"]
    scene, body = sent(Setting(clip_body(VIDEO_URL), policies=shadow), error=MediumTooLarge())
    assert url_of(body) == VIDEO_URL
    assert scene.record.findings == ["medium_too_large"]


def test_frames_are_made_once_however_often_they_are_sent() -> None:
    busy = Answer(503, pieces=(b"{}",), refusal="refused")
    scene, _ = sent(Setting(clip_body(VIDEO_URL), (busy, PLAIN), policies=rules("video: frames")))
    assert len(scene.upstream.sent) == 2
    assert scene.upstream.sent[0][2] == scene.upstream.sent[1][2]
    assert len(scene.clips.jobs) == 1


def test_the_engines_count_is_held_against_ours() -> None:
    usage = {"prompt_tokens": 200, "completion_tokens": 1, "prompt_tokens_details": {"multimodal_tokens": {"video": 9}}}
    answer = Answer(pieces=(b'{"choices":[],"usage":' + json.dumps(usage).encode() + b"}",))
    scene, _ = sent(Setting(clip_body(VIDEO_URL), (answer,)))
    assert scene.record.usage is not None
    assert (scene.record.usage.video_tokens, scene.record.video_tokens_expected) == (9, 176)
    assert scene.record.usage.image_tokens is None
