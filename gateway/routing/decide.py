"""The decision: filters, then scorers, then the picker, with a trail of what each of them found.

Raises what the filter that left nobody says: ModelNotFound, InvalidRequest (no backend takes the images), NoBackend
(every backend was tried already, or there is none).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from gateway.errors import NoBackend
from gateway.routing.ask import Decision, Profile, RouteAsk
from gateway.routing.filters import FILTERS
from gateway.routing.holding import NOTHING, Holdings
from gateway.routing.pickers import pick
from gateway.routing.scorers import SCORERS, Field
from gateway.routing.scorers.first_token import expected_s
from gateway.types import BackendView

DEFAULT_PROFILE = Profile()
_TOLD_LIMIT = 8
_WEIGHT_SUM = sum(weight for _, weight in SCORERS)


def decide(
    views: Sequence[BackendView], ask: RouteAsk, holdings: Holdings, profile: Profile = DEFAULT_PROFILE
) -> Decision:
    """Choose a backend for ``ask``. The order of ``views`` does not matter."""
    if not views:
        raise NoBackend(retry_after_s=profile.retry_after_s)
    trail: list[str] = []
    field = _field(_filtered(views, ask, profile, trail), ask, holdings, profile)
    scores = _scored(field, trail)
    picked = pick(field, scores)
    chosen = field.views[picked.index]
    trail.append(f"picker: {picked.reason} -> {chosen.name}")
    return Decision(chosen.name, chosen.url, picked.reason, tuple(trail), field.holdings[picked.index])


def _filtered(views: Sequence[BackendView], ask: RouteAsk, profile: Profile, trail: list[str]) -> Sequence[BackendView]:
    left = views
    for rule in FILTERS:
        kept = [view for view in left if rule.keeps(view, ask)]
        if not kept:
            if rule.refuse is not None:
                raise rule.refuse(ask, profile)
            trail.append(f"filter {rule.name}: none of {len(left)}, skipped")
        elif len(kept) < len(left):
            trail.append(f"filter {rule.name}: {len(kept)} of {len(left)}")
            left = kept
    return left


def _field(views: Sequence[BackendView], ask: RouteAsk, holdings: Holdings, profile: Profile) -> Field:
    held = [holdings.get(view.name, NOTHING) for view in views]
    waits_s = [expected_s(view, ask, holding, profile) for view, holding in zip(views, held, strict=True)]
    return Field(ask, profile, views, held, waits_s)


def _scored(field: Field, trail: list[str]) -> list[float]:
    """The weighted mean of all scores, in [0, 1]; a lone candidate needs no comparison."""
    if len(field.views) == 1:
        return [1.0]
    totals = [0.0] * len(field.views)
    for scorer, weight in SCORERS:
        for index, score in enumerate(scorer.score(field)):
            totals[index] += weight * score / _WEIGHT_SUM
    trail.extend(_told(field, totals))
    return totals


def _told(field: Field, totals: Sequence[float]) -> list[str]:
    """The scores for the trail, of the best few in a large fleet."""
    order: Sequence[int] = range(len(totals))
    if len(totals) > _TOLD_LIMIT:
        order = heapq.nlargest(_TOLD_LIMIT, order, key=totals.__getitem__)
    images = len(field.ask.images)
    return [
        f"score {field.views[index].name}: {totals[index]:.3f}"
        f" (first token {field.first_token_s[index] * 1e3:.0f} ms, {field.holdings[index].images} of {images} images)"
        for index in order
    ]
