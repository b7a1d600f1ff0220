"""The field of candidates: what each holds, how long its queue and the rest of the work take, who is over the load
bound.

Decided here: which few of very many backends are compared, whose pace is assumed for one that was not observed yet, and
the bound. In a large fleet those who hold something, the content's first homes and a sample of the others stand for
all: the best of two dozen picked at random is nearly the best of a thousand (Mitzenmacher 2001), and to look at each is
a millisecond. So they are picked first and filtered then, unless too few of them pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import nlargest

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.hashing import Roll, first, mixed, roll, spread
from gateway.routing.holding import NOTHING, Believed, Holdings
from gateway.routing.pace import TokenPace
from gateway.routing.reuse import known_to_others
from gateway.routing.scorers.contract import Field, queued_tokens
from gateway.types import BackendView

# Fleets up to this size are compared whole.
ALL_OF = 48
HOMES, SAMPLE, HOLDERS = 4, 24, 48
# Of those picked before the filters so many homes are looked at, and so many of the sample must pass.
_HOMES_LOOKED_AT, _SAMPLE_LEAST = 8, 12
# A patch of the vision encoder against a token of prefill, by the seeds of `ask.Profile`.
PATCHES_PER_TOKEN = 5
# A token of output against one of prefill: a step of 20 ms for some 32 requests is 0.6 ms each. How long an answer gets
# nobody knows before; limits are often set high, so no more than this is counted.
DECODE_TOKENS, OUTPUT_TOKENS_LIMIT = 6, 256
# A replica among many has too few requests of its own to tell chance from load: what others agree on may run ahead.
HOME_SPARE = 32


def shortlist(views: Sequence[BackendView], ask: RouteAsk, holdings: Holdings) -> Sequence[BackendView]:
    """Those of ``views`` that are worth comparing, in their order; all of a small fleet."""
    if len(views) <= ALL_OF:
        return views
    fleet = roll(tuple([view.name for view in views]))
    chosen = {*_holders(fleet, holdings), *_homes(fleet, ask, HOMES), *_sample(len(views), ask)}
    return [views[index] for index in sorted(chosen)]


def shortlist_passing(
    views: Sequence[BackendView],
    ask: RouteAsk,
    holdings: Holdings,
    narrow: Callable[[Sequence[BackendView]], Sequence[BackendView]],
) -> Sequence[BackendView]:
    """The shortlist of those that ``narrow`` would leave of a large fleet, without showing it everybody.

    Nobody where too few of those looked at pass to stand for all that do.
    """
    fleet = roll(tuple([view.name for view in views]))
    holders, sample = _holders(fleet, holdings), _sample(len(views), ask)
    homes = _homes(fleet, ask, _HOMES_LOOKED_AT)
    looked_at = [views[index] for index in sorted({*holders, *homes, *sample})]
    passing = {fleet.places[view.name] for view in narrow(looked_at)}
    good_homes = [index for index in homes if index in passing][:HOMES]
    good_sample = passing.intersection(sample)
    if len(good_homes) < min(HOMES, len(homes)) or len(good_sample) < _SAMPLE_LEAST:
        return ()
    return [views[index] for index in sorted(good_sample.union(good_homes, passing.intersection(holders)))]


def _holders(fleet: Roll, holdings: Holdings) -> list[int]:
    places = fleet.places
    return sorted([places[name] for name in holdings if name in places])[:HOLDERS]


def _homes(fleet: Roll, ask: RouteAsk, most: int) -> list[int]:
    """The content's first homes in their order; none without content."""
    key = ask.key.content
    if key is None:
        return []
    weighed = mixed(fleet.seeds, key)
    return [weighed.index(weight) for weight in nlargest(most, weighed)]


def _sample(count: int, ask: RouteAsk) -> list[int]:
    start = spread(ask.request_id.encode("utf-8", "surrogatepass")) % count
    return [(start + number * count // SAMPLE) % count for number in range(SAMPLE)]


def work_tokens(prefill_tokens: int, patches: int, output_tokens: int) -> int:
    """A request's whole work as prefill tokens: what a backend's recent work is counted in."""
    return prefill_tokens + patches // PATCHES_PER_TOKEN + DECODE_TOKENS * min(output_tokens, OUTPUT_TOKENS_LIMIT)


def field_of(views: Sequence[BackendView], ask: RouteAsk, holdings: Holdings, profile: Profile) -> Field:
    """The field before the bound, without a home."""
    held = [holdings.get(view.name, NOTHING) for view in views] if holdings else [NOTHING] * len(views)
    prompt, patches = ask.prompt_tokens, ask.key.encode_patches
    usual = usual_pace(views, profile)
    queue_s, work_s = [], []
    for view, holding in zip(views, held, strict=True):
        prefill = view.prefill_s_per_token or usual.prefill_s_per_token
        encode = view.encode_s_per_patch or usual.encode_s_per_patch
        if view.ramp < 1.0:  # who has just come back is slower, and must not be buried
            prefill, encode = prefill / view.ramp, encode / view.ramp
        queued = queued_tokens(view, prompt, prefill) if view.engine_waiting else view.queued_prefill_tokens
        queue_s.append(queued * prefill + view.queued_encode_patches * encode)
        if holding is NOTHING:
            work_s.append(prompt * prefill + patches * encode)
        else:
            rest, uncoded = max(0, prompt - holding.prefix_tokens), max(0, patches - holding.encode_patches)
            work_s.append(rest * prefill + uncoded * encode)
    likelihood = 0.0
    if len(views) > 1 and profile.weights.home and ask.key.content is not None:
        reuse = holdings.reuse if isinstance(holdings, Believed) else 1.0
        likelihood = profile.weights.home * known_to_others(reuse, others_share(views))
    return Field(ask, profile, views, held, queue_s, work_s, likelihood=likelihood)


def others_share(views: Sequence[BackendView]) -> float:
    """Which part of what engines have in hand is not ours, as far as they told: how much others send there."""
    known = others = 0
    for view in views:
        in_hand = (view.engine_running or 0) + (view.engine_waiting or 0)
        if in_hand and view.scraped_inflight_requests is not None:
            known += in_hand
            others += max(0, in_hand - view.scraped_inflight_requests)
    return others / known if known else 0.0


def usual_pace(views: Sequence[BackendView], profile: Profile) -> TokenPace:
    """The mean of the paces observed, for those that were not; without any, the profile's."""
    prefill = [view.prefill_s_per_token for view in views if view.prefill_s_per_token]
    encode = [view.encode_s_per_patch for view in views if view.encode_s_per_patch]
    return TokenPace(
        sum(prefill) / len(prefill) if prefill else profile.prefill_s_per_token,
        sum(encode) / len(encode) if encode else profile.encode_s_per_patch,
    )


def bounded(field: Field) -> Field:
    """The field without those over the load bound, and with the content's home among the rest.

    The bound is ``load_factor`` times the mean of recent work, and one request; a backend that holds the whole content
    may exceed it by ``spare_requests``, one that holds a part by its share. With nobody within, everybody is.
    """
    views, ask, profile = field.views, field.ask, field.profile
    count = len(views)
    recent = [view.recent_work_tokens for view in views]
    work = work_tokens(ask.prompt_tokens, ask.key.encode_patches, max(0, ask.kv_tokens - ask.prompt_tokens))
    bound = profile.load_factor * sum(recent) / count + work
    key = ask.key.content
    if max(recent) > bound:
        whole_s = max(field.work_s)
        spare = (profile.spare_requests - 1) * work
        home = first(views, key) if key is not None and field.likelihood else -1
        fitting = [
            index
            for index in range(count)
            if recent[index] <= bound
            or (whole_s > 0 and recent[index] <= bound + spare * (1 - field.work_s[index] / whole_s))
            or (index == home and recent[index] <= bound + HOME_SPARE * field.likelihood * work)
        ]
        if fitting and len(fitting) < count:
            field = replace(
                field,
                views=[views[index] for index in fitting],
                holdings=[field.holdings[index] for index in fitting],
                queue_s=[field.queue_s[index] for index in fitting],
                work_s=[field.work_s[index] for index in fitting],
            )
    return field if key is None else replace(field, home=first(field.views, key))
