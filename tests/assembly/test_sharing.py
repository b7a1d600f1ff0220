"""What replicas share reaches the parts it is for, and nothing exists where nothing is configured."""

from __future__ import annotations

import time

from gateway.assembly.sharing import (
    open_shared_cache,
    own_budgets,
    redis_settings,
    replica_name,
    shared_budgets,
    shared_cache,
    shared_notes,
)
from gateway.config.settings import Settings
from gateway.config.sources import load_settings
from gateway.state.memory import MemoryStore
from gateway.state.settings import RedisMode
from gateway.state.split import SplitStore
from gateway.telemetry.log import JsonLog


class MonotonicClock:
    now_s = staticmethod(time.monotonic)


def given(**flags: object) -> Settings:
    return load_settings(environment={}, flags={path.replace("__", "."): value for path, value in flags.items()})


def test_redis_settings_take_nodes_apart() -> None:
    assert redis_settings(Settings()) is None
    made = redis_settings(
        given(redis__url="redis://a:7000", redis__mode="cluster", redis__nodes=["b:7001", "[::1]:7002"],
              redis__lease_s=3)
    )  # fmt: skip
    assert made is not None
    assert (made.mode, made.nodes, made.lease_s) == (RedisMode.CLUSTER, (("b", 7001), ("::1", 7002)), 3.0)


def test_shared_images_go_to_redis_or_to_an_address_of_their_own() -> None:
    assert shared_cache(given(redis__url="redis://a")) is None
    wanted = {"media__shared_cache_bytes": 1 << 20, "identity__secret": "of-this-test-0123456789"}
    made = shared_cache(given(redis__url="redis://a", redis__prefix="p", media__shared_cache_ttl_s=5, **wanted))
    assert made is not None
    store, limits = made
    assert (store.url, store.prefix, limits.total_bytes, limits.ttl_s) == ("redis://a", "p", 1 << 20, 5.0)
    made = shared_cache(given(redis__url="redis://a", redis__mode="cluster", media__shared_cache_url="unix:///s",
                              media__shared_cache_deadline_s=0.5, **wanted))  # fmt: skip
    assert made is not None
    assert (made[0].url, made[0].mode, made[1].deadline_s) == ("unix:///s", RedisMode.STANDALONE, 0.5)


def test_budgets_are_shared_where_an_address_says_so() -> None:
    log = JsonLog("error", access=False)
    try:
        assert open_shared_cache(Settings(), MonotonicClock(), log) is None
        assert shared_budgets(Settings(), MonotonicClock(), log, lambda *_: None) is None
        made = shared_budgets(
            given(redis__url="redis://a", redis__min_replicas=3), MonotonicClock(), log, lambda *_: None
        )
        assert shared_notes(None) == []
        assert shared_notes(made) == ["[!]shared_store away: this replica decides by 1/3 of every limit"]
    finally:
        log.close()


def test_budgets_that_no_redis_keeps_are_split_among_processes() -> None:
    assert type(own_budgets(Settings())) is MemoryStore
    split = given(server__processes=2)
    assert type(own_budgets(split)) is SplitStore
    shared = redis_settings(given(server__processes=5, redis__url="redis://a", redis__min_replicas=3))
    assert shared is not None
    assert shared.min_replicas == 5


def test_a_replicas_name_tells_whether_its_secret_is_ours_and_not_what_it_is() -> None:
    one, other = replica_name("of-this-test-0123456789"), replica_name("of-this-test-0123456789")
    assert one.partition(".")[0] != other.partition(".")[0]
    assert one.partition(".")[2] == other.partition(".")[2] != replica_name("another-0123456789").partition(".")[2]
    assert len(one) == 12 + 1 + 8
    assert "." not in replica_name(None)
