from __future__ import annotations

from gateway.upstream.kv_events.settings import KvEventsSettings


def test_nobody_is_listened_for_and_memory_is_bounded_unless_told() -> None:
    assert (KvEventsSettings().listen, KvEventsSettings().max_blocks) == (None, 1 << 20)
