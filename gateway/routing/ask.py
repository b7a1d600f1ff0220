"""What routing is asked, by which numbers it compares (the request's side, the deployment's side), what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.routing.holding import NOTHING, Holding, RouteKey
from gateway.types import BackendName, EngineKind

NO_CONTENT = RouteKey()


@dataclass(frozen=True, slots=True)
class RouteAsk:
    """One request as routing sees it.

    ``key`` is its content; the last ``videos`` of its images are none. ``needs_frames``: videos come as sampled frames,
    a form that only vLLM takes. ``request_id`` only spreads text requests over equals. ``excluded`` backends were tried
    already.
    """

    model: str | None = None
    key: RouteKey = NO_CONTENT
    prompt_tokens: int = 0
    kv_tokens: int = 0
    needs_vision: bool = False
    needs_frames: bool = False
    videos: int = 0
    excluded: frozenset[BackendName] = frozenset()
    request_id: str = ""
    engines: frozenset[EngineKind] | None = None

    @property
    def images(self) -> tuple[bytes, ...]:
        """Placement digests in prompt order."""
        return self.key.images


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a request goes and why, and what is held of it there.

    ``trail`` has one line per filter, scorer and picker, for explain and the log.
    """

    backend: BackendName
    url: str
    reason: str
    trail: tuple[str, ...]
    holding: Holding = NOTHING

    @property
    def known_images(self) -> int:
        """How many of the request's images the backend is believed to hold."""
        return self.holding.images


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers behind *expected time to first token*; defaults are orders of magnitude, not measurements.

    ``prefill_s_per_token``: 10,000 prompt tokens a second, a 7-8B model on one data-centre GPU. ``encode_s_per_patch``:
    4,096 patches (one megapixel at 16 x 16) in 80 ms. Only their ratio and the margins decide anything.

    ``load_factor``: bound of consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2016): no backend
    takes more than this multiple of the mean. ``spare_requests`` is how far a backend that already holds the images
    may exceed the mean whatever the factor says: batching absorbs a handful, a second encoding is pure loss.
    ``leave_s``: how much later the holder's first token may be before the images are given another home.
    """

    prefill_s_per_token: float = 1e-4
    encode_s_per_patch: float = 2e-5
    load_factor: float = 1.25
    spare_requests: int = 8
    leave_s: float = 0.5
    retry_after_s: float = 1.0
