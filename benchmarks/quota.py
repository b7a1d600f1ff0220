"""What policy and budgets cost a request: resolve, both checks, the claim, reserve and settle, in memory.

Three requests: a text, ten images, and ten images under five rates and three limits in flight. Each figure is the mean
CPU time of a thousand requests one after another, the best round of several, while a hundred other reservations are
open. Pricing and planning images are measured elsewhere (`tokens`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from benchmarks.timing import Options, machine_facts
from gateway.assembly.room import room_on
from gateway.config.policies import parse_yaml
from gateway.models.book import ModelBook
from gateway.models.catalog import shipped_catalog
from gateway.models.plan import PlanRules, plan_image
from gateway.policy.check import check_declared, check_measured
from gateway.policy.policyset import DEFAULT_TENANT, PolicySet, build_policy_set
from gateway.policy.resolve import resolve
from gateway.policy.rule import MeasuredImage
from gateway.policy.schema import parse_document
from gateway.quota.claim import Used
from gateway.stages.claiming import claim_of
from gateway.state.budgets import LocalBudgets
from gateway.state.memory import MemoryStore
from gateway.types import (
    BackendName,
    BackendView,
    Call,
    ContentDigest,
    EngineKind,
    ImageFormat,
    ImagePart,
    OutputFormat,
    PlacementDigest,
    Probe,
    Size,
    SourceFacts,
    TokenEstimate,
)

_ROUNDS = 9
_REQUESTS = 1_000
_OPEN = 100
_BUDGET_US = 150.0
_MODEL = "Qwen/Qwen3-VL-8B-Instruct"
_RATES = """
kv_tokens_in_flight: 1000000000
kv_bytes_in_flight: 4TiB
requests_in_flight: 1000000
rates: {requests: 1G/min, images: 1G/min, megapixels: 1G/min, image_tokens: [1G/min, 1000G/day]}
"""
_VIEWS = tuple(
    BackendView(BackendName(f"backend-{number}"), "http://127.0.0.1", EngineKind.VLLM, models=(_MODEL,),
                kv_capacity_tokens=10**9, inflight_requests=9, inflight_kv_tokens=50_000)
    for number in range(4)
)  # fmt: skip


class _Clock:
    now_s = staticmethod(time.monotonic)


def _policies(text: str) -> PolicySet:
    document, problems = parse_document(parse_yaml(text, "benchmark.yaml"), "benchmark.yaml")
    assert not problems, problems
    return build_policy_set([document])[0]


def _part(number: int) -> ImagePart:
    part = ("messages", 0, "content", number)
    return ImagePart((*part, "image_url", "url"), part, "data:image/png;base64,AA")


def _stages(policies: PolicySet, images: int) -> Callable[[LocalBudgets], Awaitable[None]]:
    """One request of so many images through everything that policy and budgets do."""
    book = ModelBook(shipped_catalog())
    served = book.serve(_MODEL, _VIEWS)
    parts = tuple(_part(number) for number in range(images))
    call = Call(_MODEL, True, False, 256, parts, text_bytes=400, message_count=2)
    probe = Probe(ImageFormat.JPEG, Size(1280, 960))
    facts = SourceFacts(200_000, PlacementDigest(b"p" * 16), ContentDigest(b"c" * 32), probe, canonical=True)
    rules = PlanRules(None, (255, 255, 255), OutputFormat.AUTO, 95, preserve=False, version="benchmark")
    plans = [plan_image(facts, served.family, served.checkpoint, rules) for _ in range(images)]
    tokens = sum(plan.after.tokens for plan in plans)
    estimate = TokenEstimate(100, 60, 140, tokens, 2 * images, 256)
    used = Used(110 + tokens, 200, tokens)

    async def travel(budgets: LocalBudgets) -> None:
        policy = resolve(policies, tenant=DEFAULT_TENANT, header_task=None, model=_MODEL, body_task=None)
        check_declared(policy, call)
        measured = [MeasuredImage.of(part, facts, 10**9, plan) for part, plan in zip(parts, plans, strict=True)]
        check_measured(policy, measured, estimate, 262_144)
        reservation = await budgets.reserve(claim_of(policy, served, call, estimate, plans, _VIEWS))
        reservation.settle(used)
        reservation.release()

    return travel


async def _mean_us(policies: PolicySet, images: int, rounds: int) -> float:
    travel = _stages(policies, images)
    budgets = LocalBudgets(
        MemoryStore(), _Clock(), random.random, time.time, has_room=room_on(lambda: _VIEWS, 1.0)
    )  # fmt: skip
    policy = resolve(policies, tenant=DEFAULT_TENANT, header_task=None, model=_MODEL, body_task=None)
    served = ModelBook(shipped_catalog()).serve(_MODEL, _VIEWS)
    text = Call(_MODEL, True, False, 256, (), text_bytes=400, message_count=2)
    estimate = TokenEstimate(100, 60, 140, 0, 0, 256)
    held = [await budgets.reserve(claim_of(policy, served, text, estimate, (), _VIEWS)) for _ in range(_OPEN)]
    best_s = float("inf")
    for _ in range(rounds + 1):
        began_s = time.process_time()
        for _ in range(_REQUESTS):
            await travel(budgets)
        best_s = min(best_s, time.process_time() - began_s)
    for reservation in held:
        reservation.release()
    assert budgets.inflight_kv_tokens(DEFAULT_TENANT) == 0
    return round(1e6 * best_s / _REQUESTS, 1)


def run(options: Options) -> dict[str, object]:
    """Measure the three requests."""
    rounds = options.rounds or _ROUNDS
    plain, rated = _policies("mode: enforce"), _policies(_RATES)
    found = {
        "text_us": asyncio.run(_mean_us(plain, 0, rounds)),
        "ten_images_us": asyncio.run(_mean_us(plain, 10, rounds)),
        "ten_images_rated_us": asyncio.run(_mean_us(rated, 10, rounds)),
    }
    return {
        "machine": machine_facts(),
        **found,
        "budget_us": _BUDGET_US,
        "within_budget": found["ten_images_rated_us"] <= _BUDGET_US,
    }


def table(report: dict[str, object]) -> list[str]:
    """The report for people."""
    return [
        "resolve, check, claim, reserve, settle (in memory), CPU time of a request",
        f"  text                                  {report['text_us']:>7} us",
        f"  10 images                             {report['ten_images_us']:>7} us",
        f"  10 images, 5 rates, 3 limits          {report['ten_images_rated_us']:>7} us   (budget {_BUDGET_US:g} us)",
    ]
