"""What other programs tell: engines' documents, their KV events, other replicas' hints. Odd shapes are passed over."""

from __future__ import annotations

import math
import random

from gateway.routing.blocks.index import BlockIndex
from gateway.state.redis_hints import read
from gateway.types import EngineKind
from gateway.upstream.engines import engine_of
from gateway.upstream.engines.contract import EngineLoad
from gateway.upstream.kv_events.feed import END_OF_REPLAY, Feed
from gateway.upstream.kv_events.wire import NoBatch, read_batch
from tests.fuzz.targets.target import Target

_ENTRIES = 64


def documents(data: bytes) -> None:
    """Every engine reads every document at every one of its paths, and what it learns is in range."""
    text = data.decode("latin-1")
    for kind in EngineKind:
        engine = engine_of(kind)
        for path in {*engine.identity_paths, *engine.facts_paths}:
            engine.recognises({path: data})
        facts = engine.facts(dict.fromkeys(engine.facts_paths, data))
        for value in (
            facts.context_tokens,
            facts.kv_capacity_tokens,
            facts.kv_block_tokens,
            facts.max_pixels,
            facts.ranks,
        ):
            assert value is None or value >= 0
        for path in engine.load_paths:
            _in_range(engine.load(path, data))
        for status in (200, 400, 429, 500, 503):
            engine.refusal(status, data)
        engine.stream_refusal(data)
        load = engine.report(text)
        if load is not None:
            _in_range(load)


def _in_range(load: EngineLoad) -> None:
    for count in (load.running, load.waiting, load.waiting_tokens):
        assert count is None or count >= 0
    assert load.kv_use_ratio is None or 0 <= load.kv_use_ratio <= 1


def kv_events(data: bytes) -> None:
    """A publisher's bytes change its own index or nothing, in whatever order and number they come."""
    for with_tokens in (False, True):
        try:
            batch = read_batch(data, with_tokens=with_tokens)
        except NoBatch:
            continue
        assert isinstance(batch.at_s, float)
        assert batch.at_s is not math.inf or batch.events is not None
    rng = random.Random(data)
    for engine_names in (False, True):
        index = BlockIndex(_ENTRIES, engine_names=engine_names)
        feed = Feed(index, with_tokens=not engine_names, can_replay=rng.random() < 0.7)
        feed.opened(0.0)
        for now_s in range(6):
            number = rng.choice((0, 0, 1, 1, 2, 7, END_OF_REPLAY))
            rng.choice((feed.live, feed.live, feed.replayed))(number, data, float(now_s))
        feed.gave_up(9.0)
        assert index.entries <= _ENTRIES + 1
        assert index.byte_count >= 0


def hints(data: bytes) -> None:
    """What a replica hears is whole digests with counts, and few of them."""
    for backend, scope, images in read(data):
        assert isinstance(backend, str)
        assert -(10**20) < scope < 10**20
        assert 0 < len(images) <= 256
        assert all(len(digest) == 16 and 0 <= tokens < 1 << 24 for digest, tokens in images)


TARGETS = (
    Target(
        "documents",
        "documents, metrics, load reports and refusals of engines",
        documents,
        ("gateway.upstream.engines",),
        replayed=150,
    ),
    Target(
        "kv_events",
        "what publishers of KV events send, in any order",
        kv_events,
        (
            "gateway.upstream.kv_events",
            "gateway.routing.blocks",
        ),
        replayed=200,
    ),
    Target("hints", "what replicas tell each other of images", hints, ("gateway.state.redis_hints",)),
)
