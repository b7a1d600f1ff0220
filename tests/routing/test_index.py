"""What backends are believed to hold: by caches of their size, corrected by what they say."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.holding import Holding, RouteKey
from gateway.routing.index import PROCESSED_ROOM_TOKENS, PROCESSED_SHARE, CacheIndex, Room
from gateway.types import BackendName

A, B = BackendName("a"), BackendName("b")
ROOM = Room(encoded_tokens=3000, prefix_tokens=10_000)


def image(number: int, tokens: int = 1000) -> RouteKey:
    return RouteKey((number.to_bytes(16, "big")[::-1],), (4 * tokens,), (tokens,))


def chain(*links: int, tokens: int = 1000) -> RouteKey:
    return RouteKey(chain=links, chain_tokens=tuple(tokens * (number + 1) for number in range(len(links))))


def test_each_backend_has_its_own() -> None:
    index = CacheIndex(100)
    index.learn(A, image(1), ROOM)
    index.learn(B, image(2), ROOM)
    both = RouteKey(image(1).images + image(2).images, (4000, 4000), (1000, 1000))
    assert index.holdings(both) == {A: Holding(1, 4000), B: Holding(1, 4000)}
    index.forget(A)
    assert index.holdings(both) == {B: Holding(1, 4000)}


def test_backends_may_come_and_go_for_ever() -> None:
    """Sixteen bits number the owners of an entry, and every pod that is replaced has a new name."""
    index = CacheIndex(8)
    index.learn(B, image(2), ROOM)
    for number in range((1 << 16) + 10):
        pod = BackendName(f"pod-{number}")
        index.learn(pod, image(1), ROOM)
        index.forget(pod)
    index.learn(A, image(1), ROOM)
    assert index.holdings(image(1)) == {A: Holding(1, 4000)}
    assert index.holdings(image(2)) == {B: Holding(1, 4000)}


def test_tenants_share_nothing() -> None:
    index = CacheIndex(100)
    key = image(1)
    index.learn(A, key, ROOM)
    assert index.holdings(RouteKey(key.images, key.patches, key.tokens, scope=7)) == {}


def test_an_image_that_left_the_encoders_cache_is_processed_still() -> None:
    index = CacheIndex(1000)
    for number in range(4):
        index.learn(A, image(number), ROOM)
    assert index.holdings(image(3)) == {A: Holding(1, 4000)}
    assert index.holdings(image(0)) == {A: Holding(1, int(4000 * PROCESSED_SHARE))}
    for number in range(4, 4 + PROCESSED_ROOM_TOKENS // 1000):
        index.learn(A, image(number), ROOM)
    assert index.holdings(image(0)) == {}


def test_a_prefix_is_held_as_deep_as_it_was_sent() -> None:
    index = CacheIndex(100)
    index.learn(A, chain(1, 2, 3), ROOM)
    index.learn(B, chain(1), ROOM)
    assert index.holdings(chain(1, 2, 9)) == {A: Holding(0, 0, 2000), B: Holding(0, 0, 1000)}
    assert index.holdings(chain(9)) == {}


def test_prefixes_leave_when_the_kv_cache_is_full() -> None:
    index = CacheIndex(100)
    for number in range(11):
        index.learn(A, chain(100 + number), ROOM)
    assert index.holdings(chain(100)) == {}
    assert index.holdings(chain(101)) == {A: Holding(0, 0, 1000)}


def test_a_belief_that_proves_wrong_shrinks_the_room_and_right_ones_give_it_back() -> None:
    index = CacheIndex(100)
    for number in range(10):
        index.learn(A, chain(100 + number), ROOM)
    index.correct(A, Holding(0, 0, 1000), cached_tokens=0)
    assert [bool(index.holdings(chain(100 + number))) for number in range(10)] == [False] * 2 + [True] * 8
    index.correct(A, Holding(0, 0, 1000, exact=True), cached_tokens=0)
    index.correct(A, Holding(), cached_tokens=0)
    index.correct(B, Holding(0, 0, 1000), cached_tokens=0)
    assert index.holdings(chain(102))
    for number in range(40):
        index.correct(A, Holding(0, 0, 1000), cached_tokens=992)
        index.learn(A, chain(200 + number), ROOM)
    assert [bool(index.holdings(chain(200 + number))) for number in range(29, 40)] == [False] + [True] * 10


def test_what_very_many_hold_is_found_at_some() -> None:
    index = CacheIndex(100_000)
    for number in range(500):
        index.learn(BackendName(f"b{number}"), chain(1, 2), ROOM)
    assert 16 <= len(index.holdings(chain(1, 2))) <= 64


def test_images_inside_a_held_prefix_need_no_encoding() -> None:
    index = CacheIndex(100)
    index.learn(A, chain(1, 2), ROOM)
    pictures = RouteKey(image(1).images + image(2).images, (4000, 400), (1000, 100), (1, 2, 3), (1000, 2000, 3000))
    assert index.holdings(pictures) == {A: Holding(0, 0, 2000)}
    known = replace(pictures, ends=(1500, 2500))
    assert index.holdings(known) == {A: Holding(0, 4000, 2000)}
    index.learn(A, image(2), ROOM)
    assert index.holdings(known) == {A: Holding(1, 4400, 2000)}
    index.learn(A, image(1), ROOM)
    assert index.holdings(known) == {A: Holding(2, 4400, 2000)}


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.lists(st.integers(0, 30), min_size=1, max_size=6)), max_size=20))
def test_the_last_request_is_held_whole_and_looking_changes_nothing(uses: list[tuple[BackendName, list[int]]]) -> None:
    index = CacheIndex(50)
    for backend, numbers in uses:
        links = tuple(dict.fromkeys(numbers))
        keys = [image(number, 10) for number in links]
        key = RouteKey(
            tuple(one.images[0] for one in keys),
            tuple(one.patches[0] for one in keys),
            tuple(one.tokens[0] for one in keys),
            links,
            tuple(range(10, 10 * len(links) + 1, 10)),
        )
        index.learn(backend, key, ROOM)
        held = index.holdings(key)
        assert held[backend] == Holding(len(links), key.encode_patches, 10 * len(links))
        assert index.holdings(key) == held
        assert len(index) <= 100
