"""What encoders have said of pictures: bounded, least recently used first to go. Pure but for the time it is told.

Two uses of different strength. What a picture's metadata are never changes, so it is recalled as long as it is kept.
Where its encoding is written does: it counts as written for ``kept_s`` after its encoder said so. Whether that encoder
still lives is for those to find out who are told which one it was.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from gateway.handoff import Encoding
from gateway.types import BackendName

_CAPACITY = 8192


@dataclass(frozen=True, slots=True)
class Writer:
    """One life of an encoder: ``returns`` is how often it had come back when it was asked."""

    name: BackendName
    returns: int


@dataclass(frozen=True, slots=True)
class _Written:
    encoding: Encoding
    writer: Writer
    at_s: float


class Encodings:
    """At most ``capacity`` pictures."""

    def __init__(self, kept_s: float, capacity: int = _CAPACITY) -> None:
        self._kept_s = kept_s
        self._capacity = capacity
        self._written: OrderedDict[str, _Written] = OrderedDict()

    def keep(self, encoding: Encoding, writer: Writer, now_s: float) -> None:
        self._written[encoding.key] = _Written(encoding, writer, now_s)
        self._written.move_to_end(encoding.key)
        if len(self._written) > self._capacity:
            self._written.popitem(last=False)

    def recall(self, key: str) -> Encoding | None:
        found = self._written.get(key)
        return None if found is None else found.encoding

    def writer(self, key: str, now_s: float) -> Writer | None:
        """Who wrote its encoding, unless that is too long ago."""
        found = self._written.get(key)
        return None if found is None or now_s - found.at_s >= self._kept_s else found.writer
