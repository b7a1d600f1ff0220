from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import PlacedImage, TokenPrompt
from gateway.routing.holding import RouteKey
from gateway.types import BackendName, EngineKind, KvEventSource
from gateway.upstream.kv_events.service import Followed, KvEvents
from gateway.upstream.kv_events.settings import KvEventsSettings
from tests.upstream.kv_events.publisher import Publisher, stored

A, B = [1] * 9, [2] * 9
ONE, TWO = BackendName("one"), BackendName("two")
DEFAULTS = KvEventsSettings()
NOWHERE = KvEventSource(0, "tcp://127.0.0.1:1", "tcp://127.0.0.1:1")


def key_of(tokens: Iterable[int], *images: PlacedImage) -> RouteKey:
    return RouteKey(prompt=PromptChains(TokenPrompt(array("Q", tokens), images)))


@asynccontextmanager
async def events_of(
    backends: Callable[[], Iterable[Followed]], settings: KvEventsSettings = DEFAULTS
) -> AsyncIterator[KvEvents]:
    events = KvEvents(settings, backends)
    events.start()
    try:
        yield events
    finally:
        await events.stop()


async def until(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < give_up_s, "it did not come about"
        await asyncio.sleep(0.002)


async def test_whoever_is_fresh_answers_and_nobody_else() -> None:
    with Publisher() as publisher:
        publisher.publish(stored(A))
        backends = [
            Followed(ONE, EngineKind.VLLM, (publisher.source(),)),
            Followed(TWO, EngineKind.VLLM, (NOWHERE,)),
            Followed(BackendName("mute"), EngineKind.VLLM, ()),
        ]
        async with events_of(lambda: backends) as events:
            await until(lambda: events.prefix_tokens(key_of(A)) == {ONE: 8})
            assert events.prefix_tokens(key_of(B)) == {ONE: 0}
            assert events.prefix_tokens(RouteKey()) == {}
            facts = {each.backend: each for each in events.facts()}
            assert (facts[ONE].fresh, facts[ONE].blocks, facts[ONE].events) == (True, 2, 1)
            assert (facts[TWO].fresh, facts[TWO].blocks) == (False, 0)


async def test_who_knows_only_the_end_of_the_story_is_believed_only_where_he_knows_something() -> None:
    with Publisher(kept=1) as publisher:
        publisher.publish(stored(A))
        publisher.publish(stored(B))
        backends = [Followed(ONE, EngineKind.VLLM, (publisher.source(),))]
        async with events_of(lambda: backends) as events:
            await until(lambda: events.prefix_tokens(key_of(B)) == {ONE: 8})
            assert events.prefix_tokens(key_of(A)) == {}


async def test_nothing_is_said_of_images_that_nobody_can_name() -> None:
    with Publisher() as publisher:
        publisher.publish(stored(A))
        backends = [Followed(ONE, EngineKind.SGLANG, (publisher.source(),))]
        async with events_of(lambda: backends) as events:
            await until(lambda: events.prefix_tokens(key_of(A)) == {ONE: 8})
            assert events.prefix_tokens(key_of(A, PlacedImage(8, 1, "known to vLLM"))) == {}
            assert events.prefix_tokens(key_of([1] * 4 + B, PlacedImage(8, 1))) == {ONE: 4}


async def test_ranks_are_followed_each_and_the_best_counts() -> None:
    with Publisher() as first, Publisher() as second:
        first.publish(stored(A))
        second.publish(stored(B))
        sources = (first.source(), replace(second.source(), rank=1))
        async with events_of(lambda: [Followed(ONE, EngineKind.VLLM, sources)]) as events:
            await until(lambda: events.prefix_tokens(key_of(A)) == {ONE: 8})
            await until(lambda: events.prefix_tokens(key_of(B)) == {ONE: 8})


async def test_backends_come_and_go() -> None:
    with Publisher() as publisher:
        publisher.publish(stored(A))
        backends: list[Followed] = []
        async with events_of(lambda: backends) as events:
            assert events.prefix_tokens(key_of(A)) == {}
            backends.append(Followed(ONE, EngineKind.VLLM, (publisher.source(),)))
            events.look()
            await until(lambda: events.prefix_tokens(key_of(A)) == {ONE: 8})
            backends.clear()
            events.look()
            assert (events.prefix_tokens(key_of(A)), events.facts()) == ({}, [])


async def test_a_backend_that_may_have_restarted_is_not_believed_until_its_publisher_said_so() -> None:
    with Publisher() as publisher:
        publisher.publish(stored(A))
        backends = [Followed(ONE, EngineKind.VLLM, (publisher.source(replays=False),))]
        async with events_of(lambda: backends) as events:
            await until(lambda: publisher.publish(stored(A)) > 2 and ONE in events.prefix_tokens(key_of(A)))
            events.forget(ONE)
            events.forget(TWO)
            await until(lambda: ONE not in events.prefix_tokens(key_of(A)))


async def test_a_long_prompt_is_looked_up_beside_the_loop_and_once() -> None:
    tokens = [1] * 4097
    with Publisher() as publisher:
        publisher.publish(stored(tokens))
        backends = [Followed(ONE, EngineKind.VLLM, (publisher.source(),))]
        async with events_of(lambda: backends) as events:
            short = key_of(A)
            await until(lambda: events.prefix_tokens(key_of(tokens)) == {ONE: 4096})
            key = key_of(tokens)
            await events.look_ahead(key)
            await events.look_ahead(short)
            await events.look_ahead(RouteKey())
            assert key.prompt is not None
            assert short.prompt is not None
            assert (key.prompt.answers, short.prompt.answers) == ({ONE: 4096}, None)
            assert events.prefix_tokens(key) is key.prompt.answers


async def test_publishers_that_connect_by_themselves_are_awaited() -> None:
    source = KvEventSource(0, "tcp://gateway:5557", None, "kv@one", listens=False)
    backends = [Followed(ONE, EngineKind.VLLM, (source,))]
    async with events_of(lambda: backends, KvEventsSettings(listen="tcp://127.0.0.1:0")) as events:
        publisher = Publisher(b"kv@one")
        assert events.bound is not None
        publisher.connect(events.bound)
        with publisher:
            await until(lambda: publisher.publish(stored(A)) > 2 and events.prefix_tokens(key_of(A)) == {ONE: 8})
