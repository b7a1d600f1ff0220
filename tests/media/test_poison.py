from __future__ import annotations

from gateway.media.poison import PoisonList


def test_poison_is_remembered_for_its_time() -> None:
    poison = PoisonList(entries=10, ttl_s=5.0)
    poison.add(b"a", now_s=100.0)
    assert poison.holds(b"a", 104.9)
    assert not poison.holds(b"b", 104.9)
    assert not poison.holds(b"a", 105.0)
    assert not poison.holds(b"a", 101.0), "what was found stale is gone"


def test_the_oldest_is_forgotten_first() -> None:
    poison = PoisonList(entries=2, ttl_s=5.0)
    for key in (b"a", b"b", b"a", b"c"):
        poison.add(key, now_s=0.0)
    assert [poison.holds(key, 1.0) for key in (b"a", b"b", b"c")] == [True, False, True]
