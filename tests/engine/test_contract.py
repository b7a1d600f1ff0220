"""The engines' own expectations of vision (tests/contract) on a real one: directly, and through the gateway alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openai import OpenAI

from tests.contract import vision
from tests.contract.vision import Place, Scene
from tests.engine.conftest import Site
from tests.engine.pictures import data_url, drawn, jpeg

# Under the shrinking cap of nobody, so that both ways hand the engine the same bytes; by address only the gateway's own
# fetch would be seen, and the engine's limit of pictures is its default.
LEFT_OUT = {vision.one_picture_by_address, vision.several_pictures_and_one_too_many}
PICTURES = tuple(data_url(jpeg(drawn(*size, seed=31))) for size in ((640, 480), (448, 448), (320, 640)))


@pytest.fixture
def ways(site: Site, model: str) -> Iterator[tuple[Place, Place]]:
    urls = (site.engines[model].url, site.gateway.url)
    direct, through = (OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0, timeout=120) for url in urls)
    with direct, through:
        yield Place(direct, model, PICTURES, ""), Place(through, model, PICTURES, "")


@pytest.mark.parametrize(
    "scene",
    [*(scene for scene in (*vision.SCENES, *vision.VLLM_SCENES) if scene not in LEFT_OUT), vision.beams],
    ids=lambda scene: scene.__name__,
)
def test_it_holds_directly_and_through_the_gateway_alike(ways: tuple[Place, Place], scene: Scene) -> None:
    direct, through = ways
    assert scene(through) == scene(direct)
