"""The decision: filters, the field of candidates, the load bound, scorers, the picker; with a trail for who asks for
it.

Raises what the filter that left nobody says: ModelNotFound, DialectNotSupported, InvalidRequest (no backend takes the
images), MediumUnsupported (none takes sampled frames), NoBackend (every backend was tried already, or there is none).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nsmallest

from gateway.errors import NoBackend
from gateway.routing.ask import Ahead, Decision, Profile, RouteAsk
from gateway.routing.field import ALL_OF, bounded, field_of, shortlist, shortlist_passing
from gateway.routing.filters import BY_KIND, BY_REQUEST, Filter
from gateway.routing.holding import Holdings
from gateway.routing.pickers import Pick, pick
from gateway.routing.scorers import SCORERS, Field
from gateway.routing.scorers.contract import queued_tokens
from gateway.types import BackendView

DEFAULT_PROFILE = Profile()
_TOLD_LIMIT = 8


def decide(
    views: Sequence[BackendView], ask: RouteAsk, holdings: Holdings, profile: Profile = DEFAULT_PROFILE
) -> Decision:
    """Choose a backend for ``ask``. The order of ``views`` does not matter in fleets that are compared whole."""
    if not views:
        raise NoBackend(retry_after_s=profile.retry_after_s)
    notes: list[str] = []
    left, listed = _candidates(views, ask, holdings, profile, notes)
    whole = field_of(listed, ask, holdings, profile)
    if len(listed) == 1:
        return _decision(whole, Pick(0, "only_one"), lambda: (*notes, f"picker: only_one -> {listed[0].name}"))
    field = bounded(whole)
    costs_s = _costs_s(field)
    others_hold = field.views is not whole.views and any(holding.images for holding in whole.holdings)
    picked = pick(field, costs_s, others_hold=others_hold)
    return _decision(field, picked, _telling(notes, left, whole, field, costs_s, picked))


def _candidates(
    views: Sequence[BackendView], ask: RouteAsk, holdings: Holdings, profile: Profile, notes: list[str]
) -> tuple[int, Sequence[BackendView]]:
    """Of how many the field is made, and the field. If one backend passes every filter, none refuses or is skipped."""
    left = _filtered(views, BY_KIND, ask, profile, notes)
    if len(left) > ALL_OF and ask.keeper is None:
        listed = shortlist_passing(left, ask, holdings, lambda few: _passing(few, ask))
        if listed:
            return len(left), listed
    left = _filtered(left, BY_REQUEST, ask, profile, notes)
    return len(left), shortlist(left, ask, holdings)


def _passing(views: Sequence[BackendView], ask: RouteAsk) -> Sequence[BackendView]:
    for rule in BY_REQUEST:
        views = rule.narrow(views, ask)
    return views


def _filtered(
    views: Sequence[BackendView], rules: Sequence[Filter], ask: RouteAsk, profile: Profile, notes: list[str]
) -> Sequence[BackendView]:
    left = views
    for rule in rules:
        kept = rule.narrow(left, ask)
        if len(kept) == len(left):
            continue
        if kept:
            notes.append(f"filter {rule.name}: {len(kept)} of {len(left)}")
            left = kept
            continue
        refusal = rule.refuse(ask, profile, left)
        if refusal is not None:
            raise refusal
        notes.append(f"filter {rule.name}: none of {len(left)}, skipped")
    return left


def _costs_s(field: Field) -> list[float]:
    totals = [0.0] * len(field.views)
    for scorer, weight_of in SCORERS:
        weight = weight_of(field.profile.weights)
        if weight:
            totals = [total + weight * cost for total, cost in zip(totals, scorer.cost_s(field), strict=True)]
    return totals


def _decision(field: Field, picked: Pick, tell: Callable[[], tuple[str, ...]]) -> Decision:
    view, held, ask = field.views[picked.index], field.holdings[picked.index], field.ask
    ahead = Ahead(
        queued_tokens(view, ask.prompt_tokens, view.prefill_s_per_token or field.profile.prefill_s_per_token),
        view.queued_encode_patches,
        max(0, ask.prompt_tokens - held.prefix_tokens),
        max(0, ask.key.encode_patches - held.encode_patches),
        field.queue_s[picked.index] + field.work_s[picked.index],
    )
    return Decision(view.name, view.url, picked.reason, held, ahead, tell)


def _telling(
    notes: Sequence[str], left: int, whole: Field, field: Field, costs_s: Sequence[float], picked: Pick
) -> Callable[[], tuple[str, ...]]:
    """The trail, made only when it is asked for; of the best few in a large fleet."""

    def tell() -> tuple[str, ...]:
        lines = list(notes)
        if len(whole.views) < left:
            lines.append(f"shortlist: {len(whole.views)} of {left}")
        if len(field.views) < len(whole.views):
            lines.append(f"load bound: {len(field.views)} of {len(whole.views)}")
        order = nsmallest(_TOLD_LIMIT, range(len(costs_s)), key=costs_s.__getitem__)
        lines += [_score_line(field, index, costs_s[index]) for index in order]
        return (*lines, f"picker: {picked.reason} -> {field.views[picked.index].name}")

    return tell


def _score_line(field: Field, index: int, cost_s: float) -> str:
    held = field.holdings[index]
    first_token_ms = (field.queue_s[index] + field.work_s[index]) * 1e3
    known = "known" if held.exact else "believed"
    return (
        f"score {field.views[index].name}: {cost_s * 1e3:.1f} (first token {first_token_ms:.0f} ms,"
        f" {held.images} of {len(field.ask.key.images)} images, prefix of {held.prefix_tokens} tokens {known})"
    )
