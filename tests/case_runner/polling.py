"""Waiting for what tells nobody that it has happened: other processes, sockets, the kernel's tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], bool], *, within_s: float = float("inf"), every_s: float = 0.01) -> bool:
    """Look until a condition holds or the time is over; whether it holds."""
    end_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        await asyncio.sleep(every_s)
    return True
