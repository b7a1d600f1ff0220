"""What an enforced policy makes of images that are known: for shadow mode, and for requests of the past.

Decided here: under which rule's name a change is told. Not decided here: any change (``omission``, ``planning``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.errors import GatewayError
from gateway.models.book import ServedModel
from gateway.policy.dropping import images_to_drop
from gateway.policy.effective import EffectivePolicy, Excess, RuleValues
from gateway.stages.frames import spread
from gateway.stages.omission import leave_out
from gateway.stages.planning import Kept, kept_images, reason_of
from gateway.stages.shares import own_caps
from gateway.types import Call, SourceFacts

# Reasons of a size (`planning.reason_of`) and the rule that is behind each. An engine's own cap is no rule.
_RULES = {
    "policy_cap": "max_pixels",
    "cap_unreachable": "max_pixels",
    "bucket": "buckets",
    "detail": "detail",
    "max_side": "max_side",
    "token_budget": "max_image_tokens",
    "shared_budget": "max_total_pixels",
}
RECODED = "recoded"
ENGINE_CAP = "engine_cap"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The images that would go on, and how many are changed under which name.

    A rule's key; ``engine_cap`` where the engine would have shrunk the image too; ``recoded`` where its size stays.
    """

    kept: Kept
    changes: Mapping[str, int]


def rule_behind(reason: str) -> str | None:
    """The key of the rule that gave an image its size, by `planning.reason_of`; ``None`` where no rule did."""
    return _RULES.get(reason)


def rehearse(
    policy: EffectivePolicy, served: ServedModel, call: Call, facts: Sequence[SourceFacts], version: str
) -> Rehearsal:
    """Raises what `planning.plan_images` and `frames.spread` raise."""
    changes: Counter[str] = Counter()
    dropped = images_to_drop(policy, call)
    if dropped:
        by_history = images_to_drop(_with_history_alone(policy), call)
        changes["history"] += len(by_history)
        changes["max_images"] += len(dropped) - len(by_history)
        facts = [fact for index, fact in enumerate(facts) if index not in dropped]
        call = leave_out(call, dropped, None)
    call, facts = spread(policy, call, facts)
    kept = kept_images(policy, served, call, facts, version, None)
    too_large = len(call.images) - len(kept.call.images)
    if too_large:
        changes[_rule_of_excess(policy)] += too_large
    for plan, own in zip(kept.plans, own_caps(policy, kept.call), strict=True):
        if plan.target != plan.original:
            reason = str(reason_of(policy, served, plan, own)["reason"])
            changes[_RULES.get(reason, ENGINE_CAP)] += 1
        elif not plan.untouched:
            changes[RECODED] += 1
    return Rehearsal(kept, {name: count for name, count in changes.items() if count})


def refusal_of(error: GatewayError) -> str:
    """The rule by whose name a refusal is told; its code where no rule is behind it."""
    return error.rule or error.code


def _with_history_alone(policy: EffectivePolicy) -> EffectivePolicy:
    return replace(policy, max_images=None)


def _rule_of_excess(policy: RuleValues) -> str:
    """Which rule left images out because of their sizes; the history's tokens before budgets that would do so."""
    if policy.history is not None and policy.history.tokens is not None:
        return "history"
    return "max_total_pixels" if policy.on_excess.max_total_pixels is Excess.DROP_OLDEST else "max_image_tokens"
