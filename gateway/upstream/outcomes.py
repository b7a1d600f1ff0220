"""What requests meet teaches faster than probes do: each outcome is noted here, once.

A refused connection marks a backend down at once, an answer marks it up, a lost or silent one counts for its breaker, a
draining text or ``Retry-After`` takes it out of routing for a while, and all of them are compared over the fleet
(``judge``). What comes late counts too: a stream that is lost half-way, a first event that took long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway.errors import NotTaken
from gateway.ports import Clock
from gateway.types import RequestCost
from gateway.upstream.blame import rest_s
from gateway.upstream.engines.contract import DRAINING, REFUSALS
from gateway.upstream.judge import Judge
from gateway.upstream.registry import Backend
from gateway.upstream.transport.response import EngineResponse


class Outcomes:
    """``nudge`` has a backend looked at soon, ``returned`` is told when a request found one that had been down."""

    def __init__(
        self,
        clock: Clock,
        judge: Judge,
        rest_limit_s: float,
        nudge: Callable[[Backend], None],
        returned: Callable[[Backend], None],
    ) -> None:
        self._clock = clock
        self._judge = judge
        self._rest_limit_s = rest_limit_s
        self._nudge = nudge
        self._returned = returned

    def sent(self, backend: Backend) -> float:
        """A request goes there now; the time is handed back with its outcome."""
        now_s = self._clock.now_s()
        if backend.standing.breaker.tried(now_s):
            backend.refresh()
        return now_s

    def answered(self, backend: Backend, response: EngineResponse, sent_s: float, cost: RequestCost | None) -> None:
        """The head of a response came, or all of it."""
        now_s = self._clock.now_s()
        if response.load_report is not None:
            backend.learn_report(response.load_report, now_s)
        self._heard(backend, now_s)
        if response.blamed:
            self._judge.failed(backend, now_s)
        else:
            self._judge.answered(backend, now_s)
        self._rest(backend, response, now_s)
        if response.status >= 400:
            return
        if response.is_stream and not response.has_begun:
            response.watch(_Watch(self, backend, sent_s, cost))
            return
        response.watch(_Watch(self, backend, None, None))
        self._judge.took(backend, now_s, now_s - sent_s, cost, streamed=response.is_stream)

    def opened(self, backend: Backend) -> None:
        """It answered a request for a WebSocket, whatever comes of the conversation."""
        now_s = self._clock.now_s()
        self._heard(backend, now_s)
        self._judge.answered(backend, now_s)

    def failed(self, backend: Backend, failure: Exception) -> None:
        """NotTaken, BackendUnreachable, BackendLost or BackendTimeout instead of a response."""
        now_s = self._clock.now_s()
        if isinstance(failure, NotTaken) and failure.reason in REFUSALS:
            self._heard(backend, now_s)
            if failure.reason == DRAINING:
                backend.mark_draining(now_s)
                self._nudge(backend)
            if isinstance(failure.response, EngineResponse):
                self._rest(backend, failure.response, now_s)
            return
        if isinstance(failure, NotTaken) and failure.reason == "connect":
            backend.mark_down()
        self._broke(backend, now_s)
        self._judge.failed(backend, now_s)

    def lost_late(self, backend: Backend) -> None:
        """A response broke off, or fell silent, after it had begun."""
        now_s = self._clock.now_s()
        self._broke(backend, now_s)
        self._judge.failed(backend, now_s, late=True)

    def began(self, backend: Backend, sent_s: float, cost: RequestCost | None) -> None:
        """The first event of a stream came."""
        now_s = self._clock.now_s()
        self._judge.took(backend, now_s, now_s - sent_s, cost, streamed=True)

    def _heard(self, backend: Backend, now_s: float) -> None:
        if backend.standing.breaker.succeeded():
            backend.refresh()
        if backend.mark_up(now_s):
            self._returned(backend)

    def _broke(self, backend: Backend, now_s: float) -> None:
        backend.standing.breaker.failed(now_s)
        backend.refresh()
        self._nudge(backend)

    def _rest(self, backend: Backend, response: EngineResponse, now_s: float) -> None:
        if response.retry_after is None:
            return
        seconds = rest_s(response.status, response.retry_after, time.time(), self._rest_limit_s)
        if seconds is not None:
            backend.standing.rests(now_s + seconds)
            backend.refresh()


class _Watch:
    """What is still to come of one response (``transport.response.Watch``)."""

    __slots__ = ("_backend", "_cost", "_outcomes", "_sent_s")

    def __init__(self, outcomes: Outcomes, backend: Backend, sent_s: float | None, cost: RequestCost | None) -> None:
        self._outcomes = outcomes
        self._backend = backend
        self._sent_s = sent_s
        self._cost = cost

    def first(self) -> None:
        if self._sent_s is not None:
            self._outcomes.began(self._backend, self._sent_s, self._cost)

    def broke(self) -> None:
        self._outcomes.lost_late(self._backend)
