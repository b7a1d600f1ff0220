"""Several pieces of work at once, of which all or none are wanted.

Decided here: which failure is told when there are several, and that no work is left running behind a failure. Not
decided here: what the work is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from gateway.errors import GatewayError

ValueT = TypeVar("ValueT")


async def all_of(works: Sequence[Coroutine[None, None, ValueT]]) -> list[ValueT]:
    """Run all at once. When one fails the others are cancelled; of several failures the first in order is raised."""
    if len(works) < 2:
        return [await work for work in works]
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except GatewayError:
        for task in tasks:
            task.cancel()
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, GatewayError):
                raise end  # noqa: B904 - it is one of several, caused by none of the others
        raise
