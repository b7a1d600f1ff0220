"""Images that lost two workers, remembered for a while so that they fail at once instead of costing more workers.

Decided here: how long and how many. Not decided here: what counts as poison (``pool``). Time is an argument.
"""

from __future__ import annotations

from collections import OrderedDict


class PoisonList:
    """At most ``entries`` keys (content digests, scoped by whoever made them), each for ``ttl_s`` seconds."""

    def __init__(self, entries: int, ttl_s: float) -> None:
        self._entries = entries
        self._ttl_s = ttl_s
        self._until_s: OrderedDict[bytes, float] = OrderedDict()

    def add(self, key: bytes, now_s: float) -> None:
        self._until_s[key] = now_s + self._ttl_s
        self._until_s.move_to_end(key)
        while len(self._until_s) > self._entries:
            self._until_s.popitem(last=False)

    def holds(self, key: bytes, now_s: float) -> bool:
        until_s = self._until_s.get(key)
        if until_s is None:
            return False
        if until_s > now_s:
            return True
        del self._until_s[key]
        return False
