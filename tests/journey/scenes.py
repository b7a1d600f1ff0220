"""Requests worth striking at: what each one sends, which policy holds, how the backends answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.legwork import LegEnd
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.policy.keys import Caller
from gateway.policy.policyset import DEFAULT_TENANT, PolicySet, builtin_policies
from gateway.ports import PromptCount, PromptCounter
from gateway.record import RequestHead
from gateway.routing.ask import Profile
from gateway.routing.decide import DEFAULT_PROFILE
from gateway.routing.sent_ids import SentIds
from gateway.stages.exchange import World
from gateway.types import BackendRole, BackendView, EngineKind, Size, SourceFacts
from tests.journey.books import Books
from tests.journey.counting import FakePrompts
from tests.journey.fake_budgets import FakeBudgets
from tests.journey.fake_clips import FakeClips
from tests.journey.fake_legs import FakeLegs
from tests.journey.fakes import (
    MODEL,
    STREAM_TYPE,
    AllHeld,
    Answer,
    FakeClient,
    FakeMedia,
    FakeRecorder,
    FakeUpstream,
    Scene,
    facts,
    head,
    view,
)
from tests.policy.examples import policy_set

USAGE = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
PLAIN = Answer(pieces=(b'{"choices":[],', b'"usage":' + json.dumps(USAGE).encode() + b"}"))
EVENTS = Answer(
    headers=(STREAM_TYPE,),
    pieces=(
        b'data: {"choices":[]}\n\n',
        b'data: {"choices":[],"usage":' + json.dumps(USAGE).encode() + b"}\n\n",
        b"data: [DONE]\n\n",
    ),
)
BUSY = Answer(503, pieces=(b'{"error":"busy"}',), refusal="refused")
NOT_THERE = Answer(refusal="connect", has_response=False)
DATA_URL = "data:image/jpeg;base64," + "QUJD" * 300
CACHE_MISS = Answer(
    400, pieces=(b'{"error":{"message":"Cache miss for image at ', b'index 0 but data is not provided."}}')
)

VIDEO_URL = "data:video/mp4;base64," + "QUJD" * 300
VIDEO_PART = json.dumps({"type": "video_url", "video_url": {"url": VIDEO_URL}}).encode()


def body(*images: str, **fields: Any) -> bytes:
    parts: list[dict[str, Any]] = [{"type": "text", "text": "What is this?"}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in images]
    content: Any = parts if images else "Hello."
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}).encode()


@dataclass(frozen=True, slots=True)
class Setting:
    """One request and the world it meets; ``scene`` makes fresh fakes each time."""

    body: bytes
    answers: tuple[Answer, ...] = (PLAIN,)
    views: tuple[BackendView, ...] = (view("a"), view("b"))
    facts: tuple[SourceFacts, ...] = ()
    policies: PolicySet = field(default_factory=builtin_policies)
    headers: tuple[tuple[str, str], ...] = ()
    keepalive_comment_s: float | None = None
    beats: bool = False
    retries: int = 1
    max_body_bytes: int = 1 << 20
    prompts: PromptCounter | None = None
    all_held: bool = False
    helpers: tuple[BackendView, ...] = ()
    ends: tuple[LegEnd, ...] = ()
    routing: Profile = DEFAULT_PROFILE

    def scene(self, length: int | None = None, path: str = "/v1/chat/completions") -> Scene:
        books = Books()
        given = head(*self.headers, length=length, path=path)
        upstream = FakeUpstream(books, self.views, self.answers, self.retries)
        return Scene(
            books,
            FakeClient(books, given, self.body, beats=self.beats),
            FakeMedia(books, self.facts),
            FakeClips(books),
            FakeBudgets(books),
            upstream,
            FakeRecorder(),
            AllHeld() if self.all_held else SentIds(),
            FakeLegs(upstream, self.helpers, self.ends) if self.helpers else None,
        )

    def world(self) -> World:
        def admit(_head: RequestHead) -> Caller:
            return Caller(DEFAULT_TENANT)

        return World(
            policies=self.policies,
            book=ModelBook(shipped_catalog()),
            admit=admit,
            has_tenants=self.policies.has_keys,
            max_body_bytes=self.max_body_bytes,
            media_deadline_s=10.0,
            may_fetch=True,
            keepalive_comment_s=self.keepalive_comment_s,
            cache_salt=lambda tenant, user: f"salt-{tenant}-{user}",
            identify=lambda scope, content, picture: f"{'-'.join(scope)}/{content[:1].hex()}/{picture}",
            prompts=self.prompts,
            routing=self.routing,
        )


SHADOW = policy_set(default="mode: shadow\n")
CAPPED = policy_set(default="kv_tokens_in_flight: 100000\nrules:\n  max_pixels: 200704\n")
TWO_IMAGES = (facts(Size(2048, 2048)), facts(number=1))
LABORIOUS = body(metadata={"many": [[]] * 12_000})

FRAMES = policy_set(default="rules:\n  video: frames\n")


def clip_body(*urls: str, **fields: Any) -> bytes:
    """A request about videos."""
    parts: list[dict[str, Any]] = [{"type": "video_url", "video_url": {"url": url}} for url in urls]
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": parts}], **fields}).encode()


ENCODERS = (view("e", role=BackendRole.ENCODER), view("f", role=BackendRole.ENCODER))
CONSUMERS = (view("a", role=BackendRole.CONSUMER), view("b", role=BackendRole.CONSUMER))
PREFILLS = (view("p", role=BackendRole.PREFILL), view("q", role=BackendRole.PREFILL))
DECODERS = (view("a", role=BackendRole.DECODE),)
SGLANG_PREFILLS = tuple(replace(each, engine=EngineKind.SGLANG) for each in PREFILLS)
SGLANG_DECODERS = tuple(replace(each, engine=EngineKind.SGLANG) for each in DECODERS)

SETTINGS = {
    "text": Setting(body()),
    "two images": Setting(body(DATA_URL, DATA_URL + "QUJD"), facts=TWO_IMAGES, policies=CAPPED),
    "held by their ids": Setting(body(DATA_URL, DATA_URL + "QUJD"), facts=TWO_IMAGES, policies=CAPPED, all_held=True),
    "held no more": Setting(
        body(DATA_URL, DATA_URL + "QUJD"), (CACHE_MISS, PLAIN), facts=TWO_IMAGES, policies=CAPPED, all_held=True
    ),
    "held no more, streaming": Setting(
        body(DATA_URL, stream=True), (CACHE_MISS, EVENTS), facts=TWO_IMAGES, policies=CAPPED, all_held=True
    ),
    "held no more, then busy, sent elsewhere": Setting(
        body(DATA_URL), (CACHE_MISS, BUSY, PLAIN), facts=TWO_IMAGES, policies=CAPPED, all_held=True
    ),
    "a video, sampled": Setting(clip_body(VIDEO_URL), policies=FRAMES),
    "a video, sampled and sent elsewhere": Setting(clip_body(VIDEO_URL), (BUSY, PLAIN), policies=FRAMES),
    "a video in shadow": Setting(clip_body(VIDEO_URL), policies=SHADOW),
    "a video and an image": Setting(
        body(DATA_URL).replace(b'{"type": "text"', VIDEO_PART + b', {"type": "text"'), facts=(facts(),)
    ),
    "streaming": Setting(body(stream=True), (EVENTS,)),
    "sent elsewhere": Setting(body(), (BUSY, PLAIN)),
    "not connected, sent elsewhere": Setting(body(), (NOT_THERE, PLAIN)),
    "refused by both": Setting(body(), (BUSY, BUSY)),
    "not connected to either": Setting(body(), (NOT_THERE, NOT_THERE)),
    "no retries left": Setting(body(), (BUSY, PLAIN), retries=0),
    "shadow": Setting(body(DATA_URL), facts=(facts(Size(2048, 2048)),), policies=SHADOW),
    "keep-alive comments": Setting(body(stream=True), (EVENTS,), keepalive_comment_s=1.0, beats=True),
    "keep-alive comments, refused": Setting(
        body(stream=True), (Answer(400, pieces=(b'{"error":"bad"}',)),), keepalive_comment_s=1.0, beats=True
    ),
    "backend refuses": Setting(body(), (Answer(400, pieces=(b'{"error":"bad"}',)),)),
    "laborious": Setting(LABORIOUS),
    "encoded elsewhere": Setting(
        body(DATA_URL, DATA_URL + "QUJD"),
        facts=(facts(Size(2048, 2048)), facts(number=1)),
        policies=CAPPED,
        views=CONSUMERS,
        helpers=ENCODERS,
    ),
    "computed elsewhere": Setting(body(stream=True), (EVENTS,), views=DECODERS, helpers=PREFILLS),
    "computed elsewhere at once": Setting(body(), views=SGLANG_DECODERS, helpers=SGLANG_PREFILLS),
    "counted by its tokenizer": Setting(
        body(DATA_URL), facts=(facts(),), prompts=FakePrompts(PromptCount(40, 1, is_certain=True))
    ),
}
