"""What the follower of KV events is told at start. Frozen; the configuration fills it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KvEventsSettings:
    """``listen`` is where publishers that connect by themselves are awaited; they are told apart by topic.

    ``max_blocks`` bounds the index of one backend. ``replay_deadline_s``: a publisher that has not answered by then is
    taken to keep nothing.
    """

    listen: str | None = None
    max_blocks: int = 1 << 20
    replay_deadline_s: float = 5.0
