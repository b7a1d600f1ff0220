from __future__ import annotations

from gateway.errors import GatewayError
from gateway.media.codecs.probe import probe_all
from gateway.types import ImageFormat
from tests.fuzz.corpus import corpus


def kind_of(data: bytes) -> str:
    try:
        return probe_all(data).format.value
    except GatewayError as error:
        return error.code


def test_every_format_that_is_read_has_seeds() -> None:
    kinds = {kind_of(data) for data in corpus().values()}
    assert kinds >= {ImageFormat.JPEG.value, ImageFormat.PNG.value, ImageFormat.WEBP.value, ImageFormat.GIF.value}
    assert kinds >= {ImageFormat.BMP.value, ImageFormat.TIFF.value}


def test_seeds_are_small_and_the_same_every_time() -> None:
    first, second = corpus(), corpus()
    assert {name: len(data) for name, data in first.items() if not 16 < len(data) < 10_000} == {}
    assert first == second
