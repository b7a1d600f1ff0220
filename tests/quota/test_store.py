from __future__ import annotations

from gateway.quota.store import Store
from gateway.state.memory import MemoryStore


def test_the_store_in_memory_fits_the_protocol() -> None:
    store: Store = MemoryStore()
    assert store.expire(0) == ()
