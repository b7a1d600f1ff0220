"""Facts with detail: only where a policy asks, once for each source, and through a real worker."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.errors import Undecodable
from gateway.media.detailing import lacks_detail
from gateway.media.service import MediaService
from gateway.ports import MediaScope
from gateway.types import Detail, ImageFormat, Page, Probe, Size
from tests.journey.fakes import facts
from tests.media.test_service import SCOPE, in_slab, start, web

__all__ = ["start", "web"]  # fixtures

ASKS = replace(SCOPE, measures_above_pixels=1000)


@pytest.mark.parametrize(
    ("probe", "scope", "lacks"),
    [
        (Probe(ImageFormat.JPEG, Size(64, 48)), ASKS, True),
        (Probe(ImageFormat.JPEG, Size(64, 48)), SCOPE, False),
        (Probe(ImageFormat.JPEG, Size(40, 25)), ASKS, False),
        (Probe(ImageFormat.JPEG, Size(64, 48), complete=False), ASKS, False),
        (Probe(ImageFormat.GIF, Size(64, 48), frames=9), ASKS, True),
        (Probe(ImageFormat.TIFF, Size(64, 48), frames=2, pages=(Page(Size(64, 48)),) * 2), ASKS, False),
        (Probe(ImageFormat.PDF, Size(640, 480)), ASKS, False),
    ],
    ids=["asked", "not asked", "small", "cut off", "animation", "pages", "pdf"],
)
def test_what_is_measured(probe: Probe, scope: MediaScope, *, lacks: bool) -> None:
    found = replace(facts(), probe=probe)
    assert lacks_detail(found, scope) is lacks
    assert not lacks_detail(replace(found, detail=Detail(1, (), 0)), scope)


@pytest.mark.slow
async def test_a_source_is_measured_once_when_somebody_asks(start: Any, kit: Any) -> None:
    service: MediaService = await start()
    text = kit.image(losses=[7, 9])
    body, refs = in_slab(service, text)
    (plain,) = (await service.look(body, refs, SCOPE)).facts
    assert plain.detail is None
    assert len(kit.reported) == 1
    first, second = await asyncio.gather(service.look(body, refs, ASKS), service.look(body, refs, ASKS))
    assert first.facts == second.facts == (replace(plain, detail=Detail(64 * 48, (7, 9), 0)),)
    assert [fact.operation for fact in kit.reported] == ["examine", "prepare"]
    again = await service.look(body, refs, SCOPE)
    assert (len(kit.reported), again.facts) == (2, first.facts)
    assert await service.compare(body, refs[0], plain, (Size(8, 8), Size(4, 4)), SCOPE) == (40.0, 40.0)
    for looked in (first, second, again):
        looked.close()
    body.close()


@pytest.mark.slow
async def test_a_new_source_is_examined_and_measured_and_a_bad_one_named(start: Any, kit: Any) -> None:
    service: MediaService = await start()
    body, refs = in_slab(service, kit.image(), kit.image(at="measure", do="bad"))
    looked = await service.look(body, refs[:1], ASKS)
    assert looked.facts[0].detail is not None
    looked.close()
    for _ in range(2):  # a failure is not remembered
        with pytest.raises(Undecodable) as caught:
            await service.look(body, refs[1:], ASKS)
        assert caught.value.part == "part.1"
    body.close()
