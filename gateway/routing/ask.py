"""What routing is asked, by which numbers it compares (the request's side, the deployment's side), what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.routing.holding import NOTHING, Holding, RouteKey
from gateway.types import BackendName, EngineKind
from gateway.types.per_request import per_request

NO_CONTENT = RouteKey()


@per_request(frozen=True, slots=True)
class RouteAsk:
    """One request as routing sees it.

    ``key`` is its content; the last ``videos`` of its images are none. ``needs_frames``: videos come as sampled frames,
    a form that only vLLM takes. ``is_exact``: its images' tokens are the engine's own count. ``request_id`` only
    spreads text requests over equals. ``excluded`` backends were tried already.
    ``engines`` are the kinds that have the path (None: all), ``keeper`` has the response that is gone on from.
    """

    model: str | None = None
    key: RouteKey = NO_CONTENT
    prompt_tokens: int = 0
    kv_tokens: int = 0
    needs_vision: bool = False
    needs_frames: bool = False
    videos: int = 0
    is_exact: bool = False
    excluded: frozenset[BackendName] = frozenset()
    request_id: str = ""
    engines: frozenset[EngineKind] | None = None
    keeper: BackendName | None = None

    @property
    def images(self) -> tuple[bytes, ...]:
        """Placement digests in prompt order."""
        return self.key.images


@per_request(frozen=True, slots=True)
class Ahead:
    """What stands before a request's first token on the chosen backend: others' work and its own, as was expected."""

    queued_tokens: int = 0
    queued_patches: int = 0
    own_tokens: int = 0
    own_patches: int = 0
    expected_s: float = 0.0


NOTHING_AHEAD = Ahead()


def _untold() -> tuple[str, ...]:
    return ()


@per_request(frozen=True, slots=True)
class Decision:
    """Where a request goes and why, what is held of it there, and what stands before its first token.

    ``tell`` makes the trail when somebody asks for it: one line per filter, scorer and picker.
    """

    backend: BackendName
    url: str
    reason: str
    holding: Holding = NOTHING
    ahead: Ahead = NOTHING_AHEAD
    tell: Callable[[], tuple[str, ...]] = _untold

    @property
    def known_images(self) -> int:
        """How many of the request's images the backend is believed to hold."""
        return self.holding.images

    @property
    def trail(self) -> tuple[str, ...]:
        """How it came to this, for explain and the log."""
        return self.tell()


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each scorer's seconds count.

    ``queue`` and ``work`` together are the expected time to the first token. ``work`` counts above 1 because what a
    backend does again it does instead of other requests' work: they wait for it too. ``running`` is what decoding
    beside costs. ``home`` scales how likely the content's home holds what another replica was given and we were not
    (`reuse.known_to_others`).
    """

    queue: float = 1.0
    work: float = 4.0
    running: float = 1.0
    home: float = 1.0


DEFAULT_WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers behind a decision; those of pace are orders of magnitude for backends that were not observed yet.

    ``prefill_s_per_token``: 10,000 prompt tokens a second, a 7-8B model on one data-centre GPU. ``encode_s_per_patch``:
    4,096 patches (one megapixel at 16 x 16) in 80 ms. ``running_s``: how much later a first token comes per request
    that decodes beside it.

    ``load_factor``: bound of consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2016): no backend
    takes more than this multiple of the mean of recent work. ``spare_requests`` is how far a backend that already holds
    the content may exceed that: chance runs in a hot image's favour, a second encoding is loss.
    """

    prefill_s_per_token: float = 1e-4
    encode_s_per_patch: float = 2e-5
    running_s: float = 1e-3
    load_factor: float = 1.1
    spare_requests: float = 3.0
    retry_after_s: float = 1.0
    weights: Weights = DEFAULT_WEIGHTS
