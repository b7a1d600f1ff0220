"""What holds of a backend: what its operator configured, else what the engine told.

Decided here: that configuration wins, fact by fact, and where an engine's KV events are reached. Not decided here:
what is configured, what an engine tells (``engines``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

from gateway.types import KvEventSource
from gateway.upstream.engines.contract import EngineFacts
from gateway.upstream.engines.kv_events import reached
from gateway.upstream.settings import NO_KV_EVENTS, BackendSettings

_Fact = TypeVar("_Fact")


def told(settings: BackendSettings, facts: EngineFacts) -> EngineFacts:
    """The facts with everything that is configured in place of what was learnt."""
    return replace(
        facts,
        models=settings.models or facts.models,
        context_tokens=_first(settings.context_tokens, facts.context_tokens),
        kv_capacity_tokens=_first(settings.kv_tokens, facts.kv_capacity_tokens),
        kv_block_tokens=_first(settings.kv_block_tokens, facts.kv_block_tokens),
        max_pixels=_first(settings.max_pixels, facts.max_pixels),
        max_images=_first(settings.max_images, facts.max_images),
        vision=_first(settings.vision, facts.vision),
        prefix_hash=_first(settings.prefix_hash, facts.prefix_hash),
        encoder_cache_tokens=_first(settings.encoder_cache_tokens, facts.encoder_cache_tokens),
        prefill_chunk_tokens=_first(settings.prefill_chunk_tokens, facts.prefill_chunk_tokens),
        api_servers=_first(settings.api_servers, facts.api_servers),
        kv_event_sources=_kv_events(settings, facts),
    )


def _kv_events(settings: BackendSettings, facts: EngineFacts) -> tuple[KvEventSource, ...]:
    if settings.kv_events == NO_KV_EVENTS:
        return ()
    if settings.kv_events is not None:
        return (KvEventSource(0, settings.kv_events, settings.kv_events_replay),)
    return reached(facts.kv_event_sources or (), urlsplit(settings.url).hostname or "")


def _first(configured: _Fact | None, learnt: _Fact | None) -> _Fact | None:
    return learnt if configured is None else configured
