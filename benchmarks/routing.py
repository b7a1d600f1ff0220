"""Routing, simulated: how much is found in caches, how evenly work falls, how long first tokens take; and what it
costs.

Workloads are replayed over 2 to 1,000 engines by 1 to 50 replicas that share nothing, under the gateway's real decision
and under other routers' policies. Hit share is the part of all work that caches spared, against one engine with the
caches of all (in points); load is the work an engine did against the mean. ``decision_us``: looking up what is held and
deciding, ten images and twenty-four prefix links, in CPU time. ``index_bytes_per_entry`` as the allocator counts.
"""

from __future__ import annotations

import random
import statistics
import time
import tracemalloc

from benchmarks.routed import Engine, Request, possible_s
from benchmarks.routed_loads import WORKLOADS, load_of
from benchmarks.routed_policies import ROUTERS
from benchmarks.timing import Options, machine_facts
from gateway.routing.ask import RouteAsk
from gateway.routing.beliefs import Beliefs
from gateway.routing.decide import decide
from gateway.routing.holding import RouteKey
from gateway.routing.index import CacheIndex, Room
from gateway.types import BackendName, BackendView, EngineKind

SCRAPE_S = 5.0
_REQUESTS = 4_000
# (backends, replicas): every workload and router at eight; then how it grows.
_FLEETS = ((8, 1), (2, 1), (8, 8), (64, 8), (64, 50))
# Fifty replicas need time to hear of each other: so many times as many requests.
_LONGER = {(64, 50): 3}
# Over how many seeds a few replicas are judged, and with how many requests each.
_SEEDS, _SEEDED_REQUESTS = (11, 12, 13, 14, 15), 2_000
_SEEDED_FLEETS = ((8, 1), (8, 4), (8, 8), (8, 50))
_LARGE = 1_000
_FEW = ("ours", "least_loaded", "pure_hash")


def simulate(requests: list[Request], router: str, backends: int, replicas: int = 1) -> dict[str, float]:
    """Play one workload through one kind of router; replicas take requests at random.

    ``settled_p99_ms`` leaves out what came before the second report of load: until then all replicas and engines, which
    start empty together, know nothing of each other. A run that ends about then has the same in both.
    """
    engines = [Engine() for _ in range(backends)]
    routers = [ROUTERS[router](backends, seed) for seed in range(replicas)]
    dice = random.Random(3)
    first_s, saved_s, next_scrape_s = [], 0.0, 0.0
    for request in requests:
        if request.at_s >= next_scrape_s:
            for replica in routers:
                replica.scrape(request.at_s, engines)
            next_scrape_s = request.at_s + SCRAPE_S
        replica = routers[dice.randrange(replicas)]
        chosen = replica.choose(request)
        served = engines[chosen].serve(request)
        replica.sent(request, chosen, served)
        first_s.append(served.first_token_s)
        saved_s += request.full_s - served.computed_s
    total_s = sum(request.full_s for request in requests)
    ideal_s = total_s - sum(possible_s(requests, backends))
    busy = [engine.busy_s for engine in engines]
    percentiles = statistics.quantiles(first_s, n=100)
    settled_s = [taken_s for taken_s, request in zip(first_s, requests, strict=True) if request.at_s >= 2 * SCRAPE_S]
    if len(settled_s) < 100:
        settled_s = first_s
    return {
        "hit_share": round(saved_s / total_s, 4),
        "ideal_share": round(ideal_s / total_s, 4),
        "hottest_over_mean": round(max(busy) / statistics.mean(busy), 3),
        "ttft_p50_ms": round(1e3 * percentiles[49], 1),
        "ttft_p99_ms": round(1e3 * percentiles[98], 1),
        "settled_p99_ms": round(1e3 * statistics.quantiles(settled_s, n=100)[98], 1),
    }


def points_below_ideal(found: dict[str, float]) -> float:
    """How many points of hit share are missing."""
    return round(100 * (found["ideal_share"] - found["hit_share"]), 2)


def over_seeds(name: str, count: int, backends: int, replicas: int) -> dict[str, list[float]]:
    """Median and worst, over several seeds, of what one workload comes to."""
    found: dict[str, list[float]] = {"points_below_ideal": [], "hottest_over_mean": [], "p99_over_least_loaded": []}
    for seed in _SEEDS:
        requests = load_of(name, count, backends, seed)
        ours, blind = (simulate(requests, router, backends, replicas) for router in ("ours", "least_loaded"))
        found["points_below_ideal"].append(points_below_ideal(ours))
        found["hottest_over_mean"].append(ours["hottest_over_mean"])
        found["p99_over_least_loaded"].append(round(ours["ttft_p99_ms"] / blind["ttft_p99_ms"], 3))
    return {key: [statistics.median(values), max(values)] for key, values in found.items()}


def decision_us(backends: int, rounds: int = 300) -> float:
    """Median CPU time of one look-up and decision: ten images, three of them held by five backends, the rest new."""
    dice = random.Random(backends)
    views = [
        BackendView(BackendName(f"b{number}"), f"http://b{number}", EngineKind.VLLM, models=("m",),
                    kv_capacity_tokens=400_000, context_tokens=32_768, max_images=16, encoder_tokens=16_384,
                    inflight_requests=dice.randint(1, 30), inflight_kv_tokens=dice.randint(0, 100_000),
                    queued_prefill_tokens=dice.randint(0, 20_000), recent_work_tokens=dice.uniform(9e5, 1e6),
                    engine_waiting=dice.randint(0, 3), engine_running=20, scraped_inflight_requests=10,
                    scraped_age_s=1.0, kv_use_ratio=0.4, prefill_s_per_token=1e-4, encode_s_per_patch=2e-5)
        for number in range(backends)
    ]  # fmt: skip
    beliefs = Beliefs(1_000_000)
    asks = []
    for number in range(rounds):
        images = tuple(dice.randbytes(16) for _ in range(10))
        chain = tuple(dice.getrandbits(64) for _ in range(24))
        key = RouteKey(images, (4096,) * 10, (1024,) * 10, chain, tuple(range(500, 500 * 25, 500)))
        part = RouteKey(images[:3], (4096,) * 3, (1024,) * 3, chain[:6], key.chain_tokens[:6])
        for holder in dice.sample(views, min(5, backends)):
            beliefs.learn(holder.name, part, Room())
        asks.append(RouteAsk("m", key, 12_000, 13_000, needs_vision=True, is_exact=True, request_id=str(number)))
    taken = []
    for ask in asks:
        began_s = time.process_time()
        decide(views, ask, beliefs.holdings(ask.key))
        taken.append(time.process_time() - began_s)
    return round(1e6 * statistics.median(taken), 1)


def index_bytes_per_entry(entries: int = 200_000) -> float:
    """What the index of what is held where takes, all told, over eight backends."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    index = CacheIndex(entries)
    dice = random.Random(5)
    room = Room(prefix_tokens=10**9)
    while len(index) < entries:
        chain = tuple(dice.getrandbits(64) for _ in range(50))
        index.learn(BackendName(f"b{dice.randrange(8)}"), RouteKey(chain=chain, chain_tokens=tuple(range(1, 51))), room)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return round(taken / len(index), 1)


def run(options: Options) -> dict[str, object]:
    """Everything; ``rounds`` scales the number of requests (default 10)."""
    count = _REQUESTS * (options.rounds or 10) // 10
    fleets: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for backends, replicas in _FLEETS:
        longer = count * _LONGER.get((backends, replicas), 1)
        requests_of = {name: load_of(name, longer, backends) for name in WORKLOADS}
        routers = ROUTERS if (backends, replicas) == _FLEETS[0] else _FEW
        fleets[f"{backends} backends, {replicas} replicas"] = {
            name: {router: simulate(requests, router, backends, replicas) for router in routers}
            for name, requests in requests_of.items()
        }
    large = {name: load_of(name, count, _LARGE) for name in ("unique", "documents")}
    fleets[f"{_LARGE} backends, 1 replicas"] = {
        name: {router: simulate(requests, router, _LARGE) for router in ("ours", "least_loaded")}
        for name, requests in large.items()
    }
    eight = fleets["8 backends, 1 replicas"]
    unique = eight["unique"]
    return {
        "machine": machine_facts(),
        "hit_share_vs_ideal_points": max(points_below_ideal(each["ours"]) for each in eight.values()),
        "hottest_over_mean": max(each["ours"]["hottest_over_mean"] for each in eight.values()),
        "p99_over_least_loaded_without_reuse": round(
            unique["ours"]["ttft_p99_ms"] / unique["least_loaded"]["ttft_p99_ms"], 3
        ),
        "decision_us": {str(size): decision_us(size) for size in (10, _LARGE)},
        "index_bytes_per_entry": index_bytes_per_entry(),
        "fleets": fleets,
        "median_and_worst": {
            f"{backends} backends, {replicas} replicas": {
                name: over_seeds(name, _SEEDED_REQUESTS * count // _REQUESTS, backends, replicas) for name in WORKLOADS
            }
            for backends, replicas in _SEEDED_FLEETS
        },
    }


def table(report: dict[str, object]) -> list[str]:
    """The report for people."""
    lines = [
        f"hit share below the ideal   {report['hit_share_vs_ideal_points']} points (worst workload, 8 backends)",
        f"hottest over mean load      {report['hottest_over_mean']}",
        f"p99 against least-loaded    {report['p99_over_least_loaded_without_reuse']} without reuse",
        f"decision                    {report['decision_us']} us by backends",
        f"index                       {report['index_bytes_per_entry']} bytes an entry",
    ]
    fleets = report["fleets"]
    assert isinstance(fleets, dict)
    for fleet, workloads in fleets.items():
        names = ("hits", "ideal", "hottest", "p50 ms", "p99 ms", "settled")
        head = f"  {'':12} {'router':22}" + "".join(f" {name:>8}" for name in names)
        lines += ["", fleet, head]
        for name, routers in workloads.items():
            lines += [
                f"  {name:12} {router:22} {each['hit_share']:8.3f} {each['ideal_share']:8.3f}"
                f" {each['hottest_over_mean']:8.2f} {each['ttft_p50_ms']:8.0f} {each['ttft_p99_ms']:8.0f}"
                f" {each['settled_p99_ms']:8.0f}"
                for router, each in routers.items()
            ]
    return lines + _seeded_lines(report)


def _seeded_lines(report: dict[str, object]) -> list[str]:
    fleets = report["median_and_worst"]
    assert isinstance(fleets, dict)
    lines = ["", f"median / worst of {len(_SEEDS)} seeds: points below ideal, hottest over mean, p99 over least-loaded"]
    for fleet, workloads in fleets.items():
        for name, each in workloads.items():
            pairs = "".join(f" {median:8.2f} /{worst:6.2f}" for median, worst in each.values())
            lines.append(f"  {fleet:24} {name:12}{pairs}")
    return lines
