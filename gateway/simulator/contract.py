"""The seam between the server and an engine's contract: its routes, its envelopes, which paths a key guards."""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from gateway.simulator.fields import JsonObject
from gateway.simulator.refusal import Refusal


class Contract(Protocol):
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """Every route of the engine, its administration included."""
        ...

    def envelope(self, path: str, refusal: Refusal) -> JsonObject:
        """The body of a refusal on `path`."""
        ...

    def queue_full(self) -> Refusal:
        """How the engine says that its queue is full."""
        ...

    def is_guarded(self, path: str) -> bool:
        """Whether `path` needs the API key when one is set."""
        ...
