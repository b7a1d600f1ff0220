"""What the page shows as it happens: the gateway at one moment, with what it did lately.

Decided here: which facts are shown, and under which names. Not decided here: the facts (``gauges.Moment``,
``telemetry.recent``). Asked from the admin thread: reads only what is swapped whole or is a plain number. Never shows a
key, nor the address of a backend, which may hold a password.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway import __version__
from gateway.assembly.gauges import Moment
from gateway.telemetry.recent import Lately, Told
from gateway.types import BackendView, TenantId

# A page shows no more; who has more tenants sees those that hold the most.
TENANTS_SHOWN = 200


def live(moment: Moment, lately: Lately) -> dict[str, object]:
    """One look, ready for JSON."""
    pool = moment.media.pool
    followed = () if moment.kv_events is None else moment.kv_events.facts()
    blocks = {each.backend: each.blocks for each in followed}
    return {
        "version": __version__,
        "draining": moment.draining,
        "reload_ok": moment.reload_ok,
        "inflight": len(moment.inflight),
        "oldest_s": round(max((moment.now_s - started_s for started_s, _ in moment.inflight), default=0.0), 3),
        "waiting_for_budget": moment.waiting_requests,
        "store_degraded": moment.shared is not None and moment.shared.is_degraded,
        "pool": {
            "workers": pool.workers,
            "busy": pool.busy,
            "queued": pool.queued,
            "queued_s": round(pool.queued_s, 3),
            "memory_bytes": pool.rss_bytes,
            "restarts": sum(pool.restarts.values()),
            "codec_backend": moment.codec_backend,
        },
        "caches": {
            "prepared_bytes": moment.media.prepared_bytes,
            "prepared_entries": moment.media.prepared_entries,
            "known_images": moment.media.facts_entries,
            "fetched_bytes": moment.fetched.kept_bytes,
            "body_bytes": moment.media.slab_in_use_bytes,
        },
        "sums": lately.sums,
        "seconds": [[second, *_shown(sums)] for second, sums in lately.seconds],
        "backends": [_backend(view, moment, lately.backends, blocks.get(view.name, 0)) for view in moment.views],
        "tenants": _tenants(moment),
        "decisions": [_told(each) for each in lately.told],
    }


def _shown(sums: Mapping[str, int]) -> list[int]:
    """Of a second: requests, those that did not end well, tokens saved, bytes saved."""
    bad = sums["failed"] + sums["shed"] + sums["rejected"]
    return [
        sums["requests"],
        bad,
        sums["image_tokens_asked"] - sums["image_tokens_sent"],
        sums["image_bytes_in"] - sums["image_bytes_out"],
    ]


def _told(told: Told) -> dict[str, object]:
    return {"number": told.number, "trail": list(told.trail), **told.line}


def _backend(
    view: BackendView, moment: Moment, sums: Mapping[str, Mapping[str, int]], blocks: int
) -> dict[str, object]:
    breaker = moment.fleet.breakers.get(view.name)
    return {
        "name": view.name,
        "engine": view.engine.value,
        "version": view.engine_version,
        "role": view.role.value,
        "models": list(view.models[:8]),
        "healthy": view.healthy,
        "draining": view.draining,
        "resting": view.resting,
        "breaker": None if breaker is None else breaker.value,
        "ramp": round(view.ramp, 2),
        "inflight": view.inflight_requests,
        "running": view.engine_running,
        "waiting": view.engine_waiting,
        "queued_prefill_tokens": view.queued_prefill_tokens,
        "kv_tokens": view.inflight_kv_tokens,
        "kv_capacity_tokens": view.kv_capacity_tokens,
        "kv_ratio": view.kv_use_ratio,
        "kv_blocks": blocks,
        "max_requests": view.max_requests,
        "age_s": None if view.scraped_age_s is None else round(view.scraped_age_s, 1),
        "sums": sums.get(view.name),
    }


def _tenants(moment: Moment) -> list[dict[str, object]]:
    held: list[tuple[int, TenantId]] = [(moment.reserved_kv_tokens(name), name) for name in moment.tenants]
    held.sort(key=lambda each: (-each[0], each[1]))
    return [
        {
            "name": name,
            "reserved_tokens": reserved,
            "limit_tokens": limit if isinstance(limit, int) else None,
        }
        for reserved, name in held[:TENANTS_SHOWN]
        for limit in (moment.tenants[name].settings["kv_tokens_in_flight"].value,)
    ]
