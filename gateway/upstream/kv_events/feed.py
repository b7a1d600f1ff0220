"""One publisher's messages in their order: what a gap, a restart and a replay mean for what is known of its blocks.

Every message has a number, from 0 on, and its publisher's clock. A replay answers with the last messages it kept; it is
asked for from the last one that was applied, so that the answer also proves that it is still the same publisher. What
was missed for good empties the index: a block too few costs a prefill, a block too many a wrong decision. Decided here:
when an index is *fresh* (in sequence) and *whole* (nothing older is missing). Not decided here: sockets (`follower`).
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from gateway.routing.blocks.index import BlockIndex
from gateway.upstream.kv_events.wire import Batch, NoBatch, read_batch

# Live messages put by while a replay is under way; more begin a gap of their own.
_MOST_WAITING = 4096
END_OF_REPLAY = (1 << 64) - 1


class State(Enum):
    """``SILENT``: nothing heard yet, or nothing that could be built upon."""

    SILENT = "silent"
    REPLAYING = "replaying"
    FOLLOWING = "following"


class Feed:
    """One publisher. Times are seconds of the caller's clock."""

    def __init__(self, index: BlockIndex, *, with_tokens: bool, can_replay: bool) -> None:
        self.index = index
        self.state = State.SILENT
        self.connected = False
        self.whole = False
        self.events = self.ignored = self.gaps = self.replays = self.failed_replays = self.restarts = 0
        self.replay_since_s = 0.0
        self._with_tokens = with_tokens
        self._can_replay = can_replay
        self._next = 0
        self._at_s = 0.0
        self._answered = False
        self._waiting: deque[tuple[int, bytes]] = deque()

    @property
    def fresh(self) -> bool:
        """Whether the index says what the publisher said last."""
        return self.connected and self.state is State.FOLLOWING

    # --- what happens on the wire; each returns the number to ask a replay from, or None ---------------------------

    def opened(self, now_s: float) -> int | None:
        """A connection stands, for the first time or again."""
        self.connected = True
        return self._ask(max(0, self._next - 1), now_s) if self._can_replay else None

    def closed(self) -> None:
        """The connection is gone. Whatever is known may be out of date."""
        self.connected = False
        if self.state is State.FOLLOWING and not self._can_replay:
            self.state = State.SILENT

    def verify(self, now_s: float) -> int | None:
        """The publisher may have restarted: hear from itself whether it has. Without replays nothing is kept."""
        if self._can_replay:
            return self._ask(max(0, self._next - 1), now_s)
        self._empty(whole=False)
        self._next = 0
        self.state = State.SILENT
        return None

    def live(self, number: int, payload: bytes, now_s: float) -> int | None:
        """A message as it is published."""
        if self.state is State.REPLAYING:
            if len(self._waiting) == _MOST_WAITING:
                self._waiting.clear()
            self._waiting.append((number, payload))
            return None
        batch = self._read(payload)
        if batch is None:
            return None
        self.connected = True
        return self._follow(number, batch, payload, now_s)

    def replayed(self, number: int, payload: bytes, now_s: float) -> int | None:
        """A message of the answer to a replay, its end included."""
        if self.state is not State.REPLAYING:
            return None
        if number == END_OF_REPLAY:
            return self._replay_ended(now_s)
        batch = self._read(payload)
        if batch is None:
            return None
        if not self._answered:
            self._answered = True
            if self._next and number == self._next - 1:
                if batch.at_s == self._at_s:
                    return None  # the last that was applied: the same publisher
                return self._begin_anew(now_s)
            if number == 0 or number != self._next:
                self._empty(whole=number == 0)
                self._next = number
        if number >= self._next:
            self._apply(number, batch)
        return None

    def gave_up(self, now_s: float) -> int | None:
        """No answer came to a replay in time: from here on as if there were none."""
        self.failed_replays += 1
        self._empty(whole=False)
        self.state = State.SILENT
        return self._catch_up(now_s, may_ask=False)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _follow(self, number: int, batch: Batch, payload: bytes, now_s: float, *, may_ask: bool = True) -> int | None:
        may_ask = may_ask and self._can_replay
        if number != self._next:
            if number < self._next and batch.at_s <= self._at_s:
                return None  # came with a replay already
            if number < self._next:
                self.restarts += 1
                self._next = 0
            elif self.state is State.FOLLOWING or self._at_s:
                self.gaps += 1
            if may_ask and number:
                self._waiting.appendleft((number, payload))
                return self._ask(max(0, self._next - 1), now_s)
            self._empty(whole=number == 0)
        elif self.state is State.SILENT and number == 0:
            self._empty(whole=True)
        self.state = State.FOLLOWING
        self._apply(number, batch)
        return None

    def _ask(self, start: int, now_s: float) -> int:
        self.state = State.REPLAYING
        self.replays += 1
        self.replay_since_s = now_s
        self._answered = False
        return start

    def _replay_ended(self, now_s: float) -> int | None:
        if not self._answered and self._next:
            # Nothing from its last known message on: it began anew, and has said less than that.
            return self._begin_anew(now_s)
        if not self._answered:
            self._empty(whole=True)
        return self._catch_up(now_s)

    def _begin_anew(self, now_s: float) -> int:
        self.restarts += 1
        self._empty(whole=False)
        self._next = 0
        return self._ask(0, now_s)

    def _catch_up(self, now_s: float, *, may_ask: bool = True) -> int | None:
        if self.state is State.REPLAYING:
            self.state = State.FOLLOWING
        while self._waiting and self.state is not State.REPLAYING:
            number, payload = self._waiting.popleft()
            batch = self._read(payload)
            if batch is None:
                continue
            # A publisher that keeps nothing answers nothing; asking it again would not end.
            asked = self._follow(number, batch, payload, now_s, may_ask=may_ask and self._answered)
            if asked is not None:
                return asked
        return None

    def _apply(self, number: int, batch: Batch) -> None:
        for event in batch.events:
            try:
                self.index.apply(event)
            except (TypeError, OverflowError):
                self.ignored += 1
                continue
            self.events += 1
        self._next, self._at_s = number + 1, batch.at_s

    def _read(self, payload: bytes) -> Batch | None:
        try:
            return read_batch(payload, with_tokens=self._with_tokens)
        except NoBatch:
            self.ignored += 1
            return None

    def _empty(self, *, whole: bool) -> None:
        self.index.clear()
        self.whole = whole
