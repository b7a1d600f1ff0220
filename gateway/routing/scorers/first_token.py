"""Expected time to first token: the work ahead of us, then our own that the backend cannot skip.

``queued prefill + queued encoding + encoding of images not held + prefill of the prompt not held``. Requests waiting
in the engine that are not ours (other gateways, direct clients) are taken to be like this one.
"""

from __future__ import annotations

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.holding import Holding
from gateway.routing.scorers.contract import Field, Scorer
from gateway.types import BackendView

# Below this nobody can tell two backends apart, so the ratio of two tiny times decides nothing.
_RESOLUTION_S = 1e-3


def expected_s(view: BackendView, ask: RouteAsk, held: Holding, profile: Profile) -> float:
    """Seconds until the first token of ``ask`` if it went to ``view``, which holds ``held`` of it."""
    strangers = max(0, (view.engine_waiting or 0) - view.inflight_requests)
    ahead_tokens = view.queued_prefill_tokens + strangers * ask.prompt_tokens
    own_tokens = max(0, ask.prompt_tokens - held.prefix_tokens)
    patches = view.queued_encode_patches + max(0, ask.key.encode_patches - held.encode_patches)
    return (ahead_tokens + own_tokens) * profile.prefill_s_per_token + patches * profile.encode_s_per_patch


def _score(field: Field) -> list[float]:
    best_s = min(field.first_token_s) + _RESOLUTION_S
    return [best_s / (own_s + _RESOLUTION_S) for own_s in field.first_token_s]


FIRST_TOKEN = Scorer("first_token", _score)
