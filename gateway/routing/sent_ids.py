"""Which pictures a backend is believed to hold under the ids that we gave them: what may be sent as an id alone.

Decided here: what is believed of an engine's multimodal cache, and when belief in it as a whole is suspended. Not
decided here: which engines take ids, what an id is made of, what is sent again (``bytes_once``).

vLLM keeps processed pictures in one LRU of ``--mm-processor-cache-gb`` bytes (4 GiB by default) for each API server
process; every request moves its pictures to the front. The belief is the same LRU by the same weights, but learnt from
answers, so it may be wrong: others may use the engine too, and it may be told to forget. A wrong belief costs one
replay with bytes and is corrected: the picture and all that were used less recently are gone from an LRU together.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.types import BackendName

# vLLM 0.32.0, ``--mm-processor-cache-gb``.
DEFAULT_CAPACITY_BYTES = 4 << 30

# An id takes some 200 bytes of ours however small its picture is: 50 MB over all backends, shared out evenly. Four GiB
# hold 142 photographs at vLLM's usual size.
_ENTRY_LIMIT = 1 << 18
# As many backends as there may be (``upstream.membership``); those that left are the first to go.
_SHADOW_LIMIT = 1000

# Belief pays while more than two of three requests with ids alone are answered: a miss costs what two hits bring in.
_CREDIT_LIMIT = 8
_HIT_CREDIT = 1
_MISS_CREDIT = -2
# How many requests with pictures a backend gets whole after belief failed; each failure without a recovery doubles it.
_PAUSE_REQUESTS = 64
_PAUSE_LIMIT_REQUESTS = 4096


@dataclass(slots=True)
class _Shadow:
    """One backend's cache as we believe it to be since it last came back (``returns``)."""

    returns: int
    held: OrderedDict[str, int] = field(default_factory=OrderedDict)
    held_bytes: int = 0
    missed_last: bool = False
    credit: int = _CREDIT_LIMIT
    pause: int = _PAUSE_REQUESTS
    paused_for: int = 0

    def drop(self, image_id: str) -> None:
        self.held_bytes -= self.held.pop(image_id, 0)

    def drop_all(self) -> None:
        self.held.clear()
        self.held_bytes = 0

    def drop_up_to(self, image_id: str) -> None:
        """The picture and whatever was used less recently."""
        if image_id in self.held:
            while next(iter(self.held)) != image_id:
                self.drop(next(iter(self.held)))
            self.drop(image_id)


class SentIds:
    """The belief for all backends. ``returns`` is how often a backend came back: another number is an empty cache.

    (Not only a higher one: a backend that was taken out and put in again under its name begins anew.)
    """

    def __init__(self, entry_limit: int = _ENTRY_LIMIT) -> None:
        self._entry_limit = entry_limit
        self._shadows: OrderedDict[BackendName, _Shadow] = OrderedDict()

    def held(self, backend: BackendName, returns: int, ids: Sequence[str]) -> frozenset[int]:
        """The places in ``ids`` of those that may go alone; none while belief is suspended. Looking is no use."""
        shadow = self._shadows.get(backend)
        if shadow is None or shadow.returns != returns or shadow.paused_for:
            return frozenset()
        return frozenset(place for place, image_id in enumerate(ids) if image_id in shadow.held)

    def learn(
        self,
        backend: BackendName,
        returns: int,
        sent: Iterable[tuple[str, int]],
        *,
        capacity_bytes: int,
        believed: bool,
    ) -> None:
        """The backend took a request with these pictures (id, bytes in its cache), in their order.

        ``believed``: some of them went as ids alone, and it had them.
        """
        shadow = self._shadow(backend, returns)
        if believed:
            shadow.missed_last = False
            shadow.credit = min(_CREDIT_LIMIT, shadow.credit + _HIT_CREDIT)
            if shadow.credit == _CREDIT_LIMIT:
                shadow.pause = _PAUSE_REQUESTS
        elif shadow.paused_for:
            shadow.paused_for -= 1
        for image_id, weight_bytes in sent:
            shadow.drop(image_id)
            if weight_bytes <= capacity_bytes:
                shadow.held[image_id] = weight_bytes
                shadow.held_bytes += weight_bytes
        share = max(1, self._entry_limit // len(self._shadows))
        while shadow.held_bytes > capacity_bytes or len(shadow.held) > share:
            shadow.drop(next(iter(shadow.held)))

    def missed(self, backend: BackendName, returns: int, ids: Iterable[str]) -> None:
        """It did not have one of these, which went alone. A second miss in a row says that it has nothing."""
        shadow = self._shadow(backend, returns)
        for image_id in ids:
            shadow.drop_up_to(image_id)
        if shadow.missed_last:
            shadow.drop_all()
        shadow.missed_last = True
        shadow.credit += _MISS_CREDIT
        if shadow.credit <= 0:
            shadow.paused_for = shadow.pause
            shadow.pause = min(_PAUSE_LIMIT_REQUESTS, 2 * shadow.pause)
            shadow.credit = -_MISS_CREDIT  # one more chance after the pause: the next miss suspends again

    def forget(self, backend: BackendName) -> None:
        """Its cache is empty, or it is gone."""
        self._shadows.pop(backend, None)

    def held_bytes(self, backend: BackendName) -> int:
        """What its cache is believed to hold."""
        shadow = self._shadows.get(backend)
        return 0 if shadow is None else shadow.held_bytes

    def _shadow(self, backend: BackendName, returns: int) -> _Shadow:
        """The shadow of this life of the backend: a number that is another, higher or not, is another life."""
        shadow = self._shadows.get(backend)
        if shadow is None or shadow.returns != returns:
            shadow = self._shadows[backend] = _Shadow(returns)
        self._shadows.move_to_end(backend)
        if len(self._shadows) > _SHADOW_LIMIT:
            self._shadows.popitem(last=False)
        return shadow
