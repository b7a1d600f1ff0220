"""Ask an engine how busy it is: the first of its load reports that it offers."""

from __future__ import annotations

import httpx

from gateway.upstream.discover import fetch
from gateway.upstream.engines.contract import Engine, EngineLoad
from gateway.upstream.settings import BackendSettings


async def scrape(client: httpx.AsyncClient, settings: BackendSettings, engine: Engine) -> EngineLoad | None:
    """The engine's load, ``None`` where it reports none. Raises Unanswered."""
    for path in engine.load_paths:
        status, document = await fetch(client, settings, path)
        if status == httpx.codes.OK:
            return engine.load(path, document)
    return None
