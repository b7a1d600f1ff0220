"""A thousand backends, fifty gateways, a million images a minute: what each part needs, from what one costs here.

Measured with real processes (`scale_measured`), simulated with the real decision (`scale_fleet`), the rest computed,
and said so. ``--write docs/scale.md`` puts the tables into that page and the numbers beside it (docs/scale.json).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from benchmarks import scale_fleet, scale_measured
from benchmarks.routing import decision_us, index_bytes_per_entry
from benchmarks.scale_page import block, put
from benchmarks.timing import Options, machine_facts
from gateway.config.settings import Settings

BACKENDS, GATEWAYS, IMAGES_PER_MINUTE = 1_000, 50, 1_000_000
# Assumed: one image a request (the most requests for so many images), prompts as a picture and a question make them.
PROMPT_TOKENS, BLOCK_TOKENS = 1_500, 16
# Of the images: known already, new and under the cap, photographs to shrink.
MIX = {"known": 0.5, "new_under_the_cap": 0.4, "new_12_megapixels": 0.1}
# How full a core, a Redis or a wire is planned to be.
FULL = 0.6
# Looks at well backends a gateway takes a second (`upstream.health.QUIET_LOOKS_PER_S`), and requests of one look.
_REQUESTS_PER_LOOK = 2
_LONG_STREAM_S = 60.0
# Workload, requests, backends, gateways: a tenth of the size, where each backend is asked more often, and the whole.
_FLEETS = (("documents", 12_000, 100, 10), ("zipf", 12_000, 100, 10), ("documents", 20_000, BACKENDS, GATEWAYS))


def run(options: Options) -> dict[str, object]:
    """Everything; ``rounds`` scales what is measured and simulated (default 10)."""
    rounds = options.rounds or 10
    measured: dict[str, Any] = {
        "requests": scale_measured.requests(rounds),
        "redis": scale_measured.redis(rounds),
        "memory": scale_measured.memory_of_workers(),
        "watching": [scale_measured.watching(count) for count in (20, 20 * rounds)],
        "hints": scale_measured.hints(20 * rounds),
        "kv_events": scale_measured.kv_events(4 * rounds),
        "decision_us": {str(count): decision_us(count) for count in (100, BACKENDS)},
        "index_bytes_per_entry": index_bytes_per_entry(),
    }
    simulated = {
        f"{name}, {backends} backends, {gateways} gateways": {
            "zone_loss": scale_fleet.zone_loss(name, count * rounds // 10, backends, gateways),
            "restarts": scale_fleet.restarts(name, count * rounds // 10, backends, gateways),
        }
        for name, count, backends, gateways in _FLEETS
    }
    return {
        "size": {"backends": BACKENDS, "gateways": GATEWAYS, "images_per_minute": IMAGES_PER_MINUTE, "mix": MIX},
        "machine": machine_facts(),
        "measured": measured,
        "computed": computed(measured),
        "simulated": simulated,
    }


def computed(measured: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What follows for the whole, part by part. Pure."""
    per_s = IMAGES_PER_MINUTE / 60
    each_per_s = per_s / GATEWAYS
    return {
        "load": {"requests_per_s": round(per_s), "of_a_gateway": round(each_per_s), "of_a_backend": per_s / BACKENDS},
        "cpu": _cpu(measured["requests"], each_per_s),
        "network": _network(measured["requests"], each_per_s),
        "redis": _redis(measured["redis"], per_s, each_per_s),
        "memory": _memory(measured),
        "watching": _watching(measured["watching"]),
        "decision": {"loop_share": round(each_per_s * measured["decision_us"][str(BACKENDS)] / 1e6, 2)},
        "hints": _hints(measured["hints"], each_per_s),
        "kv_events": _kv_events(measured["kv_events"], per_s),
        "restarts": _restarts(),
    }


def _cpu(classes: dict[str, Any], each_per_s: float) -> dict[str, float]:
    loop_ms = sum(share * classes[name]["loop_cpu_ms"] for name, share in MIX.items())
    worker_ms = sum(share * classes[name]["worker_cpu_ms"] for name, share in MIX.items())
    return {
        "loop_ms": round(loop_ms, 2),
        "worker_ms": round(worker_ms, 2),
        "processes_of_a_gateway": math.ceil(each_per_s * loop_ms / 1e3 / FULL),
        "worker_cores_of_a_gateway": math.ceil(each_per_s * worker_ms / 1e3 / FULL),
        "requests_per_s_of_one_loop": round(1e3 * FULL / loop_ms),
        "cores_of_all": math.ceil(GATEWAYS * each_per_s * (loop_ms + worker_ms) / 1e3 / FULL),
    }


def _network(classes: dict[str, Any], each_per_s: float) -> dict[str, float]:
    into = sum(share * classes[name]["request_bytes"] for name, share in MIX.items())
    # What is known goes on as it came; of what is new the worker's file, in base64.
    out = sum(
        share * (classes[name]["image_bytes_out"] * 4 / 3 or classes[name]["request_bytes"])
        for name, share in MIX.items()
    )
    gbit = each_per_s * 8 / 1e9
    return {
        "bytes_in": round(into),
        "bytes_out": round(out),
        "gbit_per_s_in_of_a_gateway": round(into * gbit, 2),
        "gbit_per_s_out_of_a_gateway": round(out * gbit, 2),
        "gbit_per_s_in_of_all": round(into * gbit * GATEWAYS, 1),
    }


def _redis(found: dict[str, Any], per_s: float, each_per_s: float) -> dict[str, float]:
    one_core = 1e6 / max(found["server_cpu_us_per_request"].values())
    return {
        "scripts_per_s": round(per_s * found["scripts_per_request"]),
        "requests_per_s_of_one_core": round(one_core),
        "shards": math.ceil(per_s / (one_core * FULL)),
        "hot_tenant_requests_per_s": round(1e6 / found["server_cpu_us_per_request"]["one_tenant"] * FULL),
        "gateway_loop_share": round(each_per_s * found["gateway_cpu_us_per_request"] / 1e6, 3),
    }


def _memory(measured: dict[str, Any]) -> dict[str, float]:
    settings, mib = Settings(), 1 << 20
    entries = settings.upstream.index_entries
    # Where all backends hold what their caches hold: some 150 images and 1,000 links each.
    held = 1_150 * BACKENDS
    return {
        "process_mib": measured["memory"]["gateway_mib"],
        "worker_mib": measured["memory"]["worker_mib"],
        "slab_mib": settings.media.slab_bytes // mib,
        "prepared_cache_mib": settings.media.prepared_cache_bytes // mib,
        "index_entries_needed": held,
        "index_mib_needed": round(held * measured["index_bytes_per_entry"] / mib),
        "index_mib_limit": round(2 * entries * measured["index_bytes_per_entry"] / mib),
    }


def _watching(found: list[dict[str, float]]) -> dict[str, float]:
    from gateway.upstream.health import QUIET_LOOKS_PER_S  # noqa: PLC0415  # the benchmark starts without it

    few, many = found
    interval_s = Settings().upstream.probe_interval_s
    extra_looks = (many["backends"] - few["backends"]) / interval_s
    look_ms = 1e3 * (many["watching_cpu_share"] - few["watching_cpu_share"]) / extra_looks
    looks = min(BACKENDS / interval_s, QUIET_LOOKS_PER_S)
    series = (many["series"] - few["series"]) / (many["backends"] - few["backends"])
    return {
        "look_cpu_ms": round(look_ms, 2),
        "looks_per_s_of_a_gateway": looks,
        "every_s": BACKENDS / looks,
        "loop_share": round(looks * look_ms / 1e3, 3),
        "requests_per_s_of_all": round(looks * _REQUESTS_PER_LOOK * GATEWAYS),
        "requests_per_s_at_a_backend": round(looks * _REQUESTS_PER_LOOK * GATEWAYS / BACKENDS, 2),
        "mbyte_per_s_of_a_gateway": round(looks * many["scrape_page_bytes"] / 1e6, 2),
        "loop_share_every_5_s": round(BACKENDS / 5 * look_ms / 1e3, 2),
        "series_of_a_gateway": round(few["series"] + series * (BACKENDS - few["backends"])),
    }


def _hints(found: dict[str, float], each_per_s: float) -> dict[str, float]:
    told = min(each_per_s, found["images_per_beat"])
    heard = told * (GATEWAYS - 1)
    return {
        "told_per_s_of_a_gateway": round(told),
        "heard_per_s_of_a_gateway": round(heard),
        "loop_share": round(heard * found["hearing_cpu_us_per_image"] / 1e6, 3),
        "mbyte_per_s_out_of_redis": round(heard * GATEWAYS * found["beat_bytes"] / found["images_per_beat"] / 1e6, 1),
    }


def _kv_events(found: dict[str, float], per_s: float) -> dict[str, float]:
    blocks = per_s * PROMPT_TOKENS / BLOCK_TOKENS
    return {
        "blocks_per_s": round(blocks),
        "cores_of_a_gateway": round(blocks * found["cpu_us_per_block"] / 1e6, 2),
        "backends_for_a_tenth_of_a_core": round(0.1e6 / (blocks / BACKENDS * found["cpu_us_per_block"])),
    }


def _restarts() -> dict[str, float]:
    server = Settings().server
    turn_s = server.settle_s + _LONG_STREAM_S + 2
    return {
        "turn_s": turn_s,
        "one_by_one_min": round(GATEWAYS * turn_s / 60),
        "five_at_a_time_min": round(GATEWAYS * turn_s / 60 / 5),
    }


def write(report: dict[str, object], page: Path) -> None:
    """The numbers beside the page, the tables into it."""
    page.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    page.write_text(put(page.read_text(encoding="utf-8"), report), encoding="utf-8")


def table(report: dict[str, object]) -> list[str]:
    """The same tables for people at a terminal."""
    return block(report).splitlines()
