from __future__ import annotations

import pytest

from gateway.errors import MediumUnsupported
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.frames import FRAMES
from gateway.types import EngineKind
from tests.routing.fields import view


@pytest.mark.parametrize("engine", EngineKind)
def test_only_vllm_takes_frames(engine: EngineKind) -> None:
    backend = view("a", engine=engine)
    assert FRAMES.keeps(backend, RouteAsk())
    assert FRAMES.keeps(backend, RouteAsk(needs_frames=True)) is (engine is EngineKind.VLLM)


def test_a_request_that_nobody_can_take_says_so() -> None:
    assert isinstance(FRAMES.refuse(RouteAsk(), Profile(), ()), MediumUnsupported)
