"""What is asked of the guarded fetcher (``fetch.Fetcher``), by those who know it by this alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class RemoteFiles(Protocol):
    """Raises SourceBlocked, SourceFailed, SourceTooLarge."""

    async def fetch(
        self,
        url: str,
        *,
        tenant: str,
        hosts: tuple[str, ...] | None,
        max_bytes: int,
        deadline_s: float,
        take: Callable[[int], None],
    ) -> bytes: ...
