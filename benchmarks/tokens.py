"""What it costs to price an image, family by family, and a whole request of a hundred.

Every checkpoint of the catalogue prices the same mix of sizes (phone, scanner, screen, strips, tiny and huge ones);
its figure is the CPU time per image of the best round of several. A request is a hundred different sizes at once. Only
pricing is measured; planning a target is told beside it.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.timing import Options, machine_facts
from gateway.errors import GatewayError
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import family_of
from gateway.types import Size

_ROUNDS = 7
_BUDGET_MEDIAN_US = 10.0
_BUDGET_WORST_US = 50.0
_BUDGET_REQUEST_MS = 2.0


def _sizes() -> list[Size]:
    chosen = [(1, 1), (224, 224), (448, 448), (1280, 720), (1170, 2532), (3840, 2160), (4032, 3024), (3000, 100)]
    random_sides = random.Random(3)
    while len(chosen) < 100:
        chosen.append((random_sides.randint(16, 4500), random_sides.randint(16, 4500)))
    return [Size(width, height) for width, height in chosen]


def run(options: Options) -> dict[str, object]:
    """Measure one checkpoint of each family; the slowest of its family counts."""
    sizes, rounds = _sizes(), options.rounds or _ROUNDS
    families: dict[str, dict[str, float]] = {}
    for checkpoint in shipped_catalog().checkpoints:
        if checkpoint.family == "text_only":
            continue
        found = _measured(checkpoint, sizes, rounds)
        slowest = families.setdefault(checkpoint.family, found)
        families[checkpoint.family] = {key: max(value, slowest[key]) for key, value in found.items()}
    prices = {name: found["price_us"] for name, found in families.items()}
    worst = max(prices, key=prices.__getitem__)
    requests = {name: found["request_ms"] for name, found in families.items()}
    median_us = statistics.median(prices.values())
    return {
        "machine": machine_facts(),
        "families": families,
        "median_family_us": round(median_us, 2),
        "worst_family": worst,
        "worst_family_us": prices[worst],
        "median_request_ms": round(statistics.median(requests.values()), 3),
        "worst_request_ms": max(requests.values()),
        "within_budget": median_us <= _BUDGET_MEDIAN_US
        and prices[worst] <= _BUDGET_WORST_US
        and max(requests.values()) <= _BUDGET_REQUEST_MS,
    }


def _measured(checkpoint: Checkpoint, sizes: Sequence[Size], rounds: int) -> dict[str, float]:
    family = family_of(checkpoint.family)
    usable = [size for size in sizes if _is_taken(family.image_tokens, size, checkpoint)]

    def price_each() -> None:
        for size in usable:
            family.image_tokens(size, checkpoint)

    def plan_each() -> None:
        for size in usable:
            family.plan(size, checkpoint, cap_pixels=1_000_000, cap_tokens=None)

    count = len(usable)
    return {
        "price_us": round(1e6 * _best_s(price_each, rounds) / count, 2),
        "plan_us": round(1e6 * _best_s(plan_each, rounds) / count, 2),
        "request_ms": round(1e3 * _best_s(lambda: family.request_tokens(usable, checkpoint), rounds), 3),
    }


def _is_taken(question: Callable[[Size, Checkpoint], object], size: Size, checkpoint: Checkpoint) -> bool:
    try:
        question(size, checkpoint)
    except GatewayError:
        return False
    return True


def _best_s(work: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the best round; the first, which fills caches, does not count."""
    work()
    best = float("inf")
    for _ in range(rounds):
        began_s = time.process_time()
        work()
        best = min(best, time.process_time() - began_s)
    return best


def table(report: dict[str, object]) -> list[str]:
    """Families, slowest first, and the verdict."""
    families = report["families"]
    assert isinstance(families, dict)
    lines = [f"{'family':22} {'price µs':>9} {'plan µs':>9} {'100 images ms':>14}"]
    for name, found in sorted(families.items(), key=lambda entry: -float(entry[1]["price_us"])):
        lines.append(f"{name:22} {found['price_us']:9.2f} {found['plan_us']:9.2f} {found['request_ms']:14.3f}")
    lines.append(
        f"median family {report['median_family_us']} µs (at most {_BUDGET_MEDIAN_US:g}), "
        f"worst {report['worst_family']} {report['worst_family_us']} µs (at most {_BUDGET_WORST_US:g}), "
        f"worst request {report['worst_request_ms']} ms (at most {_BUDGET_REQUEST_MS:g}): "
        + ("within budget" if report["within_budget"] else "OVER BUDGET")
    )
    return lines
