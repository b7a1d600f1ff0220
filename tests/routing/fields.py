"""Backends, beliefs and strategies that the routing tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.field import bounded
from gateway.routing.field import field_of as whole_field
from gateway.routing.holding import Holding, Holdings, RouteKey
from gateway.routing.scorers import Field
from gateway.types import BackendName, BackendView, EngineKind

BLANK = BackendView(BackendName("blank"), "http://blank", EngineKind.VLLM)


def view(name: str, **facts: object) -> BackendView:
    return replace(BLANK, name=BackendName(name), url=f"http://{name}", **facts)  # type: ignore[arg-type]


def asking(images: Sequence[bytes] = (), image_patches: int = 0, **facts: object) -> RouteAsk:
    """An ask whose images have that many patches together."""
    count = len(images)
    patches = [image_patches // count] * count if count else []
    return RouteAsk(key=RouteKey(tuple(images), tuple(patches)), **facts)  # type: ignore[arg-type]


def holding(images: Mapping[str, Sequence[bytes]], ask: RouteAsk) -> Holdings:
    """Who holds what of ``ask``."""
    patches = dict(zip(ask.key.images, ask.key.patches, strict=True))
    return {
        BackendName(name): Holding(len(held), sum(patches[image] for image in held))
        for name, seen in images.items()
        if (held := [image for image in ask.images if image in seen])
    }


NOTHING: Holdings = {}


def field_of(
    views: Sequence[BackendView], ask: RouteAsk, holdings: Holdings = NOTHING, profile: Profile | None = None
) -> Field:
    """The field within the load bound."""
    return bounded(whole_field(views, ask, holdings, profile or Profile()))


IMAGES = st.lists(st.binary(min_size=16, max_size=16), max_size=4, unique=True).map(tuple)
ASKS = st.builds(
    asking,
    model=st.sampled_from([None, "m", "n"]),
    images=IMAGES,
    image_patches=st.integers(0, 20_000),
    prompt_tokens=st.integers(0, 20_000),
    kv_tokens=st.integers(1, 30_000),
    needs_vision=st.booleans(),
    excluded=st.frozensets(st.sampled_from("abcdef").map(BackendName), max_size=3),
    request_id=st.text(max_size=4),
)


_NAMES = st.lists(st.sampled_from("abcdef"), min_size=1, unique=True)
_FACTS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {
        "models": st.sampled_from([(), ("m",), ("n", "m")]),
        "healthy": st.booleans(),
        "draining": st.booleans(),
        "vision": st.booleans(),
        "max_images": st.sampled_from([None, 1, 4]),
        "context_tokens": st.sampled_from([None, 4096]),
        "kv_capacity_tokens": st.sampled_from([None, 10_000]),
        "inflight_requests": st.integers(0, 40),
        "inflight_kv_tokens": st.integers(0, 200_000),
        "queued_prefill_tokens": st.integers(0, 50_000),
        "queued_encode_patches": st.integers(0, 50_000),
        "engine_waiting": st.sampled_from([None, 0, 7]),
        "engine_running": st.sampled_from([None, 0, 9]),
        "recent_work_tokens": st.floats(0, 1e6),
        "prefill_s_per_token": st.sampled_from([None, 1e-5, 1e-3]),
        "encode_s_per_patch": st.sampled_from([None, 1e-6, 1e-4]),
        "encoder_tokens": st.sampled_from([None, 16_384]),
    }
)


def facts_of_a_backend() -> st.SearchStrategy[dict[str, object]]:
    """One that may be in any state."""
    return _FACTS


@st.composite
def fleets(draw: st.DrawFn, *, plain: bool = False) -> list[BackendView]:
    """Up to six backends in any state; ``plain`` ones are up, alike and serve anything."""
    names = draw(_NAMES)
    if plain:
        return [view(name) for name in names]
    return [view(name, **draw(_FACTS)) for name in names]
