"""What legs ask of the shell, as a Protocol: the helpers there are, several requests at once, what is remembered.

Implemented by ``upstream.legs``; absent (``None`` among the ports) where no backend has a role of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gateway.handoff import Encoding
from gateway.ports import UpstreamRequest, UpstreamResponse
from gateway.types import BackendName, BackendRole, BackendView


class LegEnd(StrEnum):
    """How a leg to a helper ended. ``refused``: it certainly did not take it. Labels of ``legs_total``."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LegAnswer:
    """What came of one leg; ``body`` is there when it is done."""

    end: LegEnd
    body: bytes = b""


class HelperFailed(Exception):
    """The helper beside a request did not do its part; the request itself was taken back."""

    def __init__(self, end: LegEnd) -> None:
        self.end = end
        super().__init__(end.value)


class Legs(Protocol):
    """Implementations keep the rules of ``ports``."""

    def helpers(self, role: BackendRole) -> Sequence[BackendView]:
        """Those of a role that are up and not draining."""
        ...

    async def ask_each(self, calls: Sequence[tuple[BackendName, UpstreamRequest]]) -> Sequence[LegAnswer]:
        """Send all at once and read each whole answer; in order. Never raises for a leg that fails."""
        ...

    async def forward_beside(
        self, helper: BackendName, first: UpstreamRequest, backend: BackendName, request: UpstreamRequest
    ) -> UpstreamResponse:
        """Send both at once and give the second's response; the first's is read and dropped.

        Raises what ``Upstream.forward`` does for the second, and HelperFailed.
        """
        ...

    def new_room(self) -> int:
        """A number of 63 bits that nobody else uses."""
        ...

    def recall(self, key: str) -> Encoding | None:
        """What was last said of this picture, whether or not it is still written somewhere."""
        ...

    def is_written(self, key: str) -> bool:
        """Whether its encoding surely still is where consumers read it, so that no encoder need be asked."""
        ...

    def keep(self, encoding: Encoding, encoder: BackendView) -> None:
        """``encoder`` said so; as it was seen before it was asked, so that a restart since then counts."""
        ...
