"""What encoders have said of pictures: bounded, least recently used first to go. Pure but for the time it is told.

Two uses of different strength. What a picture's metadata are never changes, so it is recalled as long as it is kept.
Where its encoding is written does: it counts as written for ``kept_s`` after its encoder said so, and not beyond a
restart of that encoder.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from gateway.handoff import Encoding
from gateway.types import BackendName

_CAPACITY = 8192


@dataclass(frozen=True, slots=True)
class _Written:
    encoding: Encoding
    encoder: BackendName
    at_s: float


class Encodings:
    """At most ``capacity`` pictures."""

    def __init__(self, kept_s: float, capacity: int = _CAPACITY) -> None:
        self._kept_s = kept_s
        self._capacity = capacity
        self._written: OrderedDict[str, _Written] = OrderedDict()
        self._restarted_s: dict[BackendName, float] = {}

    def keep(self, encoding: Encoding, encoder: BackendName, now_s: float) -> None:
        self._written[encoding.key] = _Written(encoding, encoder, now_s)
        self._written.move_to_end(encoding.key)
        if len(self._written) > self._capacity:
            self._written.popitem(last=False)

    def recall(self, key: str) -> Encoding | None:
        found = self._written.get(key)
        return None if found is None else found.encoding

    def is_written(self, key: str, now_s: float) -> bool:
        found = self._written.get(key)
        if found is None or now_s - found.at_s >= self._kept_s:
            return False
        return self._restarted_s.get(found.encoder, found.at_s - 1.0) < found.at_s

    def restarted(self, encoder: BackendName, now_s: float) -> None:
        """What it wrote before may be gone with it."""
        self._restarted_s[encoder] = now_s
