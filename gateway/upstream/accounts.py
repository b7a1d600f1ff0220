"""What our own requests ask of one backend at this moment, as four running sums.

A request's account is opened when the backend is chosen, loses its prefill share when the first byte comes, and is
closed on every way out. Everything is synchronous and safe to repeat, so no cancellation can leak load.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.types import RequestCost


class Load:
    """The sums. ``changed`` is called after every change."""

    __slots__ = ("_changed", "encode_patches", "kv_tokens", "prefill_tokens", "requests")

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.requests = 0
        self.kv_tokens = 0
        self.prefill_tokens = 0
        self.encode_patches = 0

    def open(self, cost: RequestCost) -> OpenAccount:
        self.requests += 1
        self.kv_tokens += cost.kv_tokens
        self.prefill_tokens += cost.prompt_tokens
        self.encode_patches += cost.encode_patches
        self._changed()
        return OpenAccount(self, cost)

    def answered(self, cost: RequestCost) -> None:
        self.prefill_tokens -= cost.prompt_tokens
        self.encode_patches -= cost.encode_patches
        self._changed()

    def closed(self, cost: RequestCost) -> None:
        self.requests -= 1
        self.kv_tokens -= cost.kv_tokens
        self._changed()


class OpenAccount:
    """One request's standing on one backend (``ports.Account``)."""

    __slots__ = ("_answered", "_closed", "_cost", "_load")

    def __init__(self, load: Load, cost: RequestCost) -> None:
        self._load = load
        self._cost = cost
        self._answered = False
        self._closed = False

    def answered(self) -> None:
        """The first byte came: the prefill is no longer ahead of others."""
        if not self._answered:
            self._answered = True
            self._load.answered(self._cost)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.answered()
            self._load.closed(self._cost)
