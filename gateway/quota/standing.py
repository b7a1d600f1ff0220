"""How a tenant stands against its rates, and the headers that tell it.

Decided here: names and spelling. OpenAI's clients read ``x-ratelimit-{limit,remaining,reset}-{requests,tokens}``, the
reset as a duration (``1s``, ``6m0s``, ``120ms``) until the limit is as if untouched; Anthropic's read
``anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}``, the reset as a time in
RFC 3339. Units that they do not know (images, megapixels, ...) get names of the same pattern. Of several windows of one
unit the one with the smallest share left is told; a limit is its window's amount, of which only a burst may come at
once. Sources: platform.openai.com/docs/guides/rate-limits, docs.anthropic.com/en/api/rate-limits. Not decided here: the
numbers.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.quota.claim import Charge, Unit
from gateway.quota.gcra import MICROSECONDS, Rate, remaining, reset_us

_ANTHROPIC_NAMES = {Unit.PROMPT_TOKENS: "input-tokens", Unit.OUTPUT_TOKENS: "output-tokens"}
_PIXELS = 10**6
_WINDOWS = {1: "second", 60: "minute", 3_600: "hour", 86_400: "day"}


@dataclass(frozen=True, slots=True)
class Standing:
    """The buckets of some charges at one moment: ``now_us`` by the store's clock, ``wall_s`` since 1970."""

    charges: Sequence[Charge] = ()
    tats_us: Sequence[int] = ()
    now_us: int = 0
    wall_s: float = 0.0

    def lines(self) -> list[Line]:
        """One line per unit, in the order of the charges."""
        found: dict[Unit, tuple[float, Line]] = {}
        for charge, tat_us in zip(self.charges, self.tats_us, strict=True):
            left = remaining(tat_us, self.now_us, charge.rate)
            line = Line(charge.unit, charge.rate.amount, left, reset_us(tat_us, self.now_us))
            share = left / charge.rate.burst_amount
            if charge.unit not in found or share < found[charge.unit][0]:
                found[charge.unit] = (share, line)
        return [line for _, line in found.values()]


@dataclass(frozen=True, slots=True)
class Line:
    """One unit: its window's amount, what may come now, and how long until its bucket is as if untouched."""

    unit: Unit
    limit: int
    remaining: int
    reset_us: int


NOTHING = Standing()


def rate_headers(standing: Standing, dialect: str) -> list[tuple[str, str]]:
    """The headers in the spelling of a dialect's clients; empty without rates."""
    if not standing.charges:
        return []
    if dialect == "anthropic_messages":
        return list(_anthropic(standing))
    return list(_openai(standing))


def _openai(standing: Standing) -> Iterable[tuple[str, str]]:
    for line in standing.lines():
        name = line.unit.value.replace("_", "-")
        yield f"x-ratelimit-limit-{name}", amount_of(line.unit, line.limit)
        yield f"x-ratelimit-remaining-{name}", amount_of(line.unit, line.remaining)
        yield f"x-ratelimit-reset-{name}", duration(line.reset_us)


def _anthropic(standing: Standing) -> Iterable[tuple[str, str]]:
    for line in standing.lines():
        name = f"anthropic-ratelimit-{_ANTHROPIC_NAMES.get(line.unit, line.unit.value.replace('_', '-'))}"
        at_s = math.ceil(standing.wall_s + line.reset_us / MICROSECONDS)
        yield f"{name}-limit", amount_of(line.unit, line.limit)
        yield f"{name}-remaining", amount_of(line.unit, line.remaining)
        yield f"{name}-reset", datetime.datetime.fromtimestamp(at_s, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def amount_of(unit: Unit, amount: int) -> str:
    """As people read it: megapixels are counted in pixels and told in millions, cut to a thousandth."""
    if unit is not Unit.MEGAPIXELS:
        return str(amount)
    return f"{amount * 1_000 // _PIXELS / 1_000:g}" if amount < _PIXELS * 10**5 else str(amount // _PIXELS)


def window_of(rate: Rate) -> str:
    """The window of a rate in words: ``minute``."""
    return _WINDOWS.get(rate.period_s, f"{rate.period_s} s")


def duration(amount_us: int) -> str:
    """As Go prints it and OpenAI sends it: ``0s``, ``17ms``, ``1.5s``, ``6m0s``, ``23h59m1s``; rounded up to a ms."""
    ms = -(-amount_us // 1_000)
    if ms == 0:
        return "0s"
    if ms < 1_000:
        return f"{ms}ms"
    minutes, rest_ms = divmod(ms, 60_000)
    seconds = f"{rest_ms / 1_000:.3f}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds
