"""How often content comes again, and from that how likely others have sent what we were not asked about yet.

Decided here: the estimate. Replicas share nothing but the order of homes, so each judges by its own traffic: which
share of its requests came with content (what homes go by) that it had met before. Where content never comes again, a
home is worth nothing and pulling requests there only unbalances queues. Not decided here: what a home is worth in
seconds (`scorers.home`).

Bounded and deterministic: a memory of the last contents, two sums that fade by the request.
"""

from __future__ import annotations

from collections import OrderedDict, deque

# Some minutes of a busy replica; beyond that caches have let go of it, too.
CONTENTS_LIMIT = 4_096
# A resend or a leg is the same request: it says nothing about what users send.
_SAME_REQUEST = 16
# The sums lose two thirds in so many requests.
_FADE = 1 - 1 / 128
# A tenth of an observation to start with: among many replicas, each of which may have met it, homes are trusted at
# once, and a dozen requests of new content overrule it.
_FIRST_AGAIN, _FIRST_ASKED = 0.1, 1.0


class Reuse:
    """The traffic of one replica."""

    def __init__(self, contents_limit: int = CONTENTS_LIMIT) -> None:
        self._limit = contents_limit
        self._met: OrderedDict[int, None] = OrderedDict()
        self._requests: deque[int] = deque(maxlen=_SAME_REQUEST)
        self._again, self._asked = _FIRST_AGAIN, _FIRST_ASKED

    @property
    def share(self) -> float:
        """Which share of requests comes with content that this replica has met before, 0 to 1."""
        return min(1.0, self._again / self._asked)

    def met(self, content: int, request: int) -> None:
        """A request with this content is sent; ``request`` is the hash of all of it."""
        if request in self._requests:
            return
        self._requests.append(request)
        self._again *= _FADE
        self._asked = self._asked * _FADE + 1
        if content in self._met:
            self._met.move_to_end(content)
            self._again += 1
            return
        self._met[content] = None
        if len(self._met) > self._limit:
            self._met.popitem(last=False)

    def found(self) -> None:
        """An engine held more of a request than anything of ours explains: somebody else had sent it."""
        self._again = min(self._asked, self._again + 1)


def known_to_others(share: float, others_share: float) -> float:
    """How likely others have sent content that we have not met.

    ``others_share`` of the engines' work is theirs, so they are ``others_share / (1 - others_share)`` replicas like us,
    each of which has met it with probability ``share``.
    """
    if others_share >= 1:
        return 1.0 if share > 0 else 0.0
    return float(1 - (1 - share) ** (others_share / (1 - others_share)))
