"""Backends, beliefs and strategies that the routing tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.holding import NOTHING as NO_HOLDING
from gateway.routing.holding import Holding, Holdings, RouteKey
from gateway.routing.scorers import Field
from gateway.routing.scorers.first_token import expected_s
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
    profile = profile or Profile()
    held = [holdings.get(one.name, NO_HOLDING) for one in views]
    waits_s = [expected_s(one, ask, each, profile) for one, each in zip(views, held, strict=True)]
    return Field(ask, profile, views, held, waits_s)


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
_FACTS = st.fixed_dictionaries(
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
    }
)


@st.composite
def fleets(draw: st.DrawFn, *, plain: bool = False) -> list[BackendView]:
    """Up to six backends in any state; ``plain`` ones are up, alike and serve anything."""
    names = draw(_NAMES)
    if plain:
        return [view(name) for name in names]
    return [view(name, **draw(_FACTS)) for name in names]
