"""Sums over replayed requests, by tenant and task.

Decided here: what is compared with what. Tokens, KV and compute are those of requests that are served both before and
after; who is refused now and who was refused then is counted beside them. Not decided here: any of the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.replay.line import Exchange
from gateway.replay.run import Outcome

_MS_PER_HOUR = 3_600_000.0
_NAMES = 1_000


@dataclass(frozen=True, slots=True)
class Prices:
    """What is paid, in one currency; 0 = nothing."""

    per_million_tokens: float = 0.0
    per_gpu_hour: float = 0.0


@dataclass(slots=True)
class Side:
    """One side of the comparison."""

    image_tokens: int = 0
    prompt_tokens: int = 0
    kv_tokens: int = 0
    most_kv_bytes: int = 0
    kv_bytes: int = 0
    gpu_ms: float = 0.0
    shrunk: int = 0
    omitted: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.image_tokens += outcome.image_tokens
        self.prompt_tokens += outcome.prompt_tokens
        self.kv_tokens += outcome.kv_tokens
        self.kv_bytes += outcome.kv_bytes
        self.most_kv_bytes = max(self.most_kv_bytes, outcome.kv_bytes)
        self.gpu_ms += outcome.gpu_ms
        self.shrunk += outcome.shrunk
        self.omitted += outcome.omitted

    def cost(self, prices: Prices) -> float:
        return self.prompt_tokens * prices.per_million_tokens / 1e6 + self.gpu_ms * prices.per_gpu_hour / _MS_PER_HOUR

    def to_json(self, prices: Prices) -> dict[str, object]:
        return {
            "image_tokens": self.image_tokens,
            "prompt_tokens": self.prompt_tokens,
            "kv_tokens": self.kv_tokens,
            "kv_bytes": self.kv_bytes,
            "most_kv_bytes": self.most_kv_bytes,
            "gpu_s": round(self.gpu_ms / 1000, 3),
            "images_shrunk": self.shrunk,
            "images_omitted": self.omitted,
            "refused": dict(self.refused.most_common()),
            "cost": round(self.cost(prices), 6),
        }


@dataclass(slots=True)
class Tally:
    """One tenant and task. ``compared`` requests are in the sums of both sides; ``unsized`` ones had no sizes."""

    tenant: str
    task: str
    requests: int = 0
    compared: int = 0
    unsized: int = 0
    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)
    changes: Counter[str] = field(default_factory=Counter)

    def add(self, before: Outcome, after: Outcome) -> None:
        self.requests += 1
        for side, outcome in ((self.before, before), (self.after, after)):
            if outcome.refused is not None:
                side.refused[outcome.refused] += 1
        if before.refused is not None or after.refused is not None:
            return
        if not (before.sized and after.sized):
            self.unsized += 1
            return
        self.compared += 1
        self.before.add(before)
        self.after.add(after)
        self.changes.update(after.changes)

    def saved(self, prices: Prices) -> float:
        return self.before.cost(prices) - self.after.cost(prices)


@dataclass(slots=True)
class Shadowed:
    """What shadow mode found for one tenant and task: requests by rule that would be refused, images by rule changed.

    ``examples`` are a few request ids of each rule that would refuse.
    """

    tenant: str
    task: str
    requests: int = 0
    refused: int = 0
    changed: int = 0
    tokens_original: int = 0
    tokens_left: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, line: Exchange) -> None:
        self.requests += 1
        self.refused += bool(line.findings)
        self.changed += bool(line.shadow_changes) and not line.findings
        if line.shadow_image_tokens is not None and line.estimate is not None and not line.findings:
            self.tokens_original += line.estimate.image
            self.tokens_left += line.shadow_image_tokens
        for finding in dict.fromkeys(line.findings):
            self.findings[finding] += 1
            known = self.examples.setdefault(finding, [])
            if len(known) < 3:
                known.append(line.request_id)
        if not line.findings:
            self.changes.update(line.shadow_changes)

    def to_json(self) -> dict[str, object]:
        return {
            "tenant": self.tenant,
            "task": self.task,
            "requests": self.requests,
            "would_be_refused": self.refused,
            "would_be_changed": self.changed,
            "image_tokens": self.tokens_original,
            "image_tokens_left": self.tokens_left,
            "findings": dict(self.findings.most_common()),
            "images_changed": dict(self.changes.most_common()),
            "examples": self.examples,
        }


def place_of(line: Exchange, known: Mapping[tuple[str, str], object]) -> tuple[str, str]:
    """Tenant and task of a line; names beyond a thousand count together, since a log may hold anything."""
    place = (line.tenant or "-", line.task or "-")
    return place if place in known or len(known) < _NAMES else ("other", "other")
