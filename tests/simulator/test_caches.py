from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.caches import BlockPool, Lease, WeightedLru, block_hashes
from gateway.simulator.prompt import Span

IDS = list(range(100, 140))


def test_only_full_blocks_have_a_hash() -> None:
    assert len(block_hashes(IDS, [], None, 16)) == 2
    assert len(block_hashes(IDS[:15], [], None, 16)) == 0


def test_a_salt_separates_every_block() -> None:
    plain, salted, other = (block_hashes(IDS, [], salt, 16) for salt in (None, "a", "b"))
    assert not {*plain} & {*salted}
    assert not {*salted} & {*other}


def test_a_picture_counts_from_the_block_it_begins_in() -> None:
    first = block_hashes(IDS, [Span(20, 10, "one")], None, 16)
    second = block_hashes(IDS, [Span(20, 10, "two")], None, 16)
    assert first[0] == second[0]
    assert first[1] != second[1]


def test_known_blocks_are_hits_up_to_the_usable_ones() -> None:
    pool = BlockPool(10)
    hashes = block_hashes(IDS, [], None, 16)
    first = pool.acquire(hashes, 3, usable_hits=2)
    assert first is not None
    assert first.hit_blocks == 0
    pool.release(first)
    assert pool.used_blocks == 0
    assert pool.known_prefix(hashes) == 2
    again = pool.acquire(hashes, 3, usable_hits=1)
    assert again is not None
    assert again.hit_blocks == 1


def test_shared_blocks_are_held_once() -> None:
    pool = BlockPool(4)
    hashes = block_hashes(IDS, [], None, 16)
    leases = [pool.acquire(hashes, 3, 2), pool.acquire(hashes, 3, 2)]
    assert pool.used_blocks == 4
    assert pool.acquire(hashes, 3, 2) is None
    for lease in leases:
        assert lease is not None
        pool.release(lease)
    assert pool.used_blocks == 0


def test_idle_blocks_give_way_oldest_first() -> None:
    pool = BlockPool(2)
    old, new = block_hashes([1] * 16, [], None, 16), block_hashes([2] * 16, [], None, 16)
    for hashes in (old, new):
        lease = pool.acquire(hashes, 1, 0)
        assert lease is not None
        pool.release(lease)
    lease = pool.acquire(block_hashes([3] * 16, [], None, 16), 1, 0)
    assert lease is not None
    assert pool.known_prefix(old) == 0
    assert pool.known_prefix(new) == 1
    pool.forget_idle()
    assert pool.known_prefix(new) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.booleans()), max_size=40))
def test_a_pool_never_holds_more_than_it_has(steps: list[tuple[int, int, bool]]) -> None:
    pool = BlockPool(8)
    held: list[Lease] = []
    for seed, prompt_blocks, is_release in steps:
        if is_release and held:
            pool.release(held.pop(0))
            continue
        hashes = block_hashes([seed] * 16 * prompt_blocks, [], None, 16)
        lease = pool.acquire(hashes, prompt_blocks + 1, prompt_blocks)
        if lease is not None:
            held.append(lease)
        assert 0 <= pool.used_blocks <= 8
    for lease in held:
        pool.release(lease)
    assert pool.used_blocks == 0


def test_an_lru_forgets_the_least_recently_used_by_weight() -> None:
    cache: WeightedLru[str] = WeightedLru(10)
    cache.put("a", "A", 4)
    cache.put("b", "B", 4)
    assert cache.get("a") == "A"
    cache.put("c", "C", 4)
    assert cache.get("b") is None
    assert cache.get("a") == "A"
    cache.put("huge", "H", 11)
    assert cache.get("huge") is None
    assert len(cache) == 2
    cache.clear()
    assert cache.get("a") is None


def test_replacing_an_entry_replaces_its_weight() -> None:
    cache: WeightedLru[int] = WeightedLru(10)
    for value in range(5):
        cache.put("same", value, 6)
    cache.put("other", 9, 4)
    assert (cache.get("same"), cache.get("other")) == (4, 9)
