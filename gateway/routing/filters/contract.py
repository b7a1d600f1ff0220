"""What a filter is: a name for the trail, a test of one backend, and what becomes of the request if nobody passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.errors import GatewayError
from gateway.routing.ask import Profile, RouteAsk
from gateway.types import BackendView


@dataclass(frozen=True, slots=True)
class Filter:
    """``refuse`` None makes the filter soft: with nobody left it is skipped and the trail says so."""

    name: str
    keeps: Callable[[BackendView, RouteAsk], bool]
    refuse: Callable[[RouteAsk, Profile], GatewayError] | None = None
