"""Expected time to first token: the work ahead of us, then our own that the backend cannot skip.

``queued prefill + queued encoding + encoding of images not held + prefill of the prompt not cached``. The share of
the prompt that the prefix cache saves is taken to be the share of images held, at most all but one token in four
(the text behind the last image is new in every turn); exact prefix knowledge would replace this guess. Requests
waiting in the engine that are not ours (other gateways, direct clients) are taken to be like this one.
"""

from __future__ import annotations

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.scorers.contract import Field, Scorer
from gateway.types import BackendView

_CACHED_PROMPT_RATIO_LIMIT = 0.75
# Below this nobody can tell two backends apart, so the ratio of two tiny times decides nothing.
_RESOLUTION_S = 1e-3


def expected_s(view: BackendView, ask: RouteAsk, held: int, profile: Profile) -> float:
    """Seconds until the first token of ``ask`` if it went to ``view``, ``held`` of its images being there."""
    strangers = max(0, (view.engine_waiting or 0) - view.inflight_requests)
    ahead_tokens = view.queued_prefill_tokens + strangers * ask.prompt_tokens
    missing_ratio = 1.0 - held / len(ask.images) if ask.images else 0.0
    cached_ratio = (1.0 - missing_ratio) * _CACHED_PROMPT_RATIO_LIMIT if ask.images else 0.0
    own_tokens = ask.prompt_tokens * (1.0 - cached_ratio)
    patches = view.queued_encode_patches + ask.image_patches * missing_ratio
    return (ahead_tokens + own_tokens) * profile.prefill_s_per_token + patches * profile.encode_s_per_patch


def _score(field: Field) -> list[float]:
    best_s = min(field.first_token_s) + _RESOLUTION_S
    return [best_s / (own_s + _RESOLUTION_S) for own_s in field.first_token_s]


FIRST_TOKEN = Scorer("first_token", _score)
