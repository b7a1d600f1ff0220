"""What policies cost: loading a thousand files, and resolving and checking one request with ten images.

The files are written anew into a folder of their own: a default, and a thousand tenants with keys, tasks, overrides and
rules of choice, as an operator of many teams would have them. A request is resolved as nearly all are (found again) and
for the first time, past rules of ``choose`` that do not fit; then checked as declared and as measured against a policy
with a dozen limits. Figures are CPU microseconds of the best of several rounds; loading is CPU seconds.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Options, machine_facts
from gateway.config.policies import load_policies
from gateway.policy.check import check_declared, check_measured
from gateway.policy.choose import Asked
from gateway.policy.effective import EffectivePolicy
from gateway.policy.policyset import PolicySet
from gateway.policy.resolve import resolve
from gateway.policy.rule import MeasuredImage
from gateway.types import Call, ImageFormat, ImagePart, Size, TenantId, TokenEstimate

TENANTS = 1_000
IMAGES = 10
_ROUNDS = 9
_LOADS = 3
_CALLS = 2_000
_BUDGET_LOAD_S = 2.0
_BUDGET_REQUEST_US = 100.0

_DEFAULT = """\
mode: enforce
hosts: any
rules: {max_images: 100, max_image_bytes: 48MiB, max_input_pixels: 100MP, on_excess: shrink}
tasks: {chat: {}, ocr: {output: png}, document: {}, classify: {max_images: 1}}
"""
_TENANT = """\
tenant: team-%(number)d
keys: ["sha256:%(key)s"]
kv_tokens_in_flight: 200000
hosts: ["*.team-%(number)d.example.com"]
isolation: {cache_salt: tenant}
model_aliases: {fast: Qwen/Qwen3-VL-8B-Instruct, "fast@ocr": Qwen/Qwen3-VL-8B-Instruct}
choose:
  - {task: ocr, path: /v1/messages, min_images: 4}
  - {task: document, headers: {x-team: "scan*"}}
rules:
  max_images: 20
  max_total_bytes: 100MiB
  max_pixels: 1280x32x32
  max_input_side: {1: 8000, 21: 2000}
  max_total_pixels: 64MP
  detail: {low: 512x512, high: 2500x32x32}
  max_image_tokens: 20000
  max_prompt_tokens: 60000
  max_kv_tokens: 80000
tasks:
  chat:
  ocr: {max_pixels: 4MP, output: png, mode: shadow}
  document: {max_pixels: 2560x32x32}
models:
  "Qwen/Qwen2.5-VL-*": {max_pixels: 1280x28x28}
"""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the stages hand it on."""

    call: Call
    images: tuple[MeasuredImage, ...]
    estimate: TokenEstimate
    asked: Asked


def write_policies(folder: Path, tenants: int) -> None:
    """A default and so many tenants."""
    (folder / "default.yaml").write_text(_DEFAULT)
    for number in range(tenants):
        values = {"number": number, "key": hashlib.sha256(str(number).encode()).hexdigest()}
        (folder / f"team-{number}.yaml").write_text(_TENANT % values)


def request_of(images: int) -> Request:
    """A chat request whose images are photographs of a phone, under every limit."""
    parts = []
    for index in range(images):
        pointer = ("messages", 0, "content", index, "image_url", "url")
        parts.append(ImagePart(pointer, pointer[:4], "data:image/jpeg;base64,AAAA", detail="high"))
    call = Call("fast", False, False, 512, tuple(parts), 400, 1)
    measured = tuple(
        MeasuredImage(part.name, ImageFormat.JPEG, 3_000_000, Size(4032, 3024), 1, 1_310_720, Size(1312, 960), 1_230)
        for part in parts
    )
    estimate = TokenEstimate(120, 60, 240, 1_230 * images, 2 * images, 512)
    return Request(call, measured, estimate, Asked("/v1/chat/completions", lambda _: None, "fast", None, images, False))


def run(options: Options) -> dict[str, object]:
    """Measure loading, resolving and both checks."""
    rounds = options.rounds or _ROUNDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_policies(folder, TENANTS)
        load_s, policies = _loaded(folder)
    request, tenant = request_of(IMAGES), TenantId("team-7")

    def resolved(asked: Asked) -> EffectivePolicy:
        return resolve(policies, tenant=tenant, header_task=None, model="fast", body_task=None, asked=asked)

    def first() -> EffectivePolicy:
        policies.resolved.clear()
        return resolved(request.asked)

    policy = resolved(request.asked)
    figures = {
        "resolve_again_us": _best_us(lambda: resolved(request.asked), rounds),
        "resolve_first_us": _best_us(first, rounds, calls=200),
        "check_declared_us": _best_us(lambda: check_declared(policy, request.call), rounds),
        "check_measured_us": _best_us(
            lambda: check_measured(policy, request.images, request.estimate, 262_144), rounds
        ),
    }
    request_us = figures["resolve_again_us"] + figures["check_declared_us"] + figures["check_measured_us"]
    return {
        "machine": machine_facts(),
        "tenants": TENANTS,
        "images": IMAGES,
        "load_s": round(load_s, 2),
        **{key: round(value, 1) for key, value in figures.items()},
        "request_us": round(request_us, 1),
        "within_budget": load_s <= _BUDGET_LOAD_S and request_us <= _BUDGET_REQUEST_US,
    }


def _loaded(folder: Path) -> tuple[float, PolicySet]:
    taken, policies = [], load_policies(folder)
    for _ in range(_LOADS):
        began_s = time.process_time()
        policies = load_policies(folder)
        taken.append(time.process_time() - began_s)
    return min(taken), policies


def _best_us(work: Callable[[], object], rounds: int, calls: int = _CALLS) -> float:
    best_s = float("inf")
    for _ in range(rounds):
        began_s = time.process_time()
        for _ in range(calls):
            work()
        best_s = min(best_s, (time.process_time() - began_s) / calls)
    return 1e6 * best_s


def table(report: dict[str, object]) -> list[str]:
    """The report for people."""
    return [
        f"{report['tenants']} tenants loaded     {report['load_s']} CPU-s (at most {_BUDGET_LOAD_S:g})",
        f"resolved, found again     {report['resolve_again_us']} us",
        f"resolved, first time      {report['resolve_first_us']} us",
        f"checked as declared       {report['check_declared_us']} us ({report['images']} images)",
        f"checked as measured       {report['check_measured_us']} us",
        f"a request                 {report['request_us']} us (at most {_BUDGET_REQUEST_US:g})",
        f"within budget             {report['within_budget']}",
    ]
