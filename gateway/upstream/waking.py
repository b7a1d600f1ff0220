"""The costly probe that an engine's cheap ones need now and then (SGLang's ``/health``, which computes a token).

Decided here: how often it is asked, and that its answer is nobody's news: it makes the engine look at itself, and what
it found is told by the cheap probe from then on. Not decided here: which engine has one (``engines``).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx

from gateway.upstream.discover import Unanswered, fetch
from gateway.upstream.registry import Backend

# SGLang gives its own check 20 s (SGLANG_HEALTH_CHECK_TIMEOUT, 0.5.23).
_PATIENCE_S = 25.0


async def keep_awake(backend: Backend, client: httpx.AsyncClient, every_s: float) -> None:
    """Ask until cancelled. Does nothing while the engine has no such probe, or is down anyway."""
    while True:
        await asyncio.sleep(every_s)
        path = backend.engine.waking_path
        if path is not None and backend.up:
            with suppress(Unanswered):
                await fetch(client, backend.settings, path, timeout_s=_PATIENCE_S)
