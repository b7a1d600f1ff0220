from __future__ import annotations

from gateway.errors import GatewayError
from gateway.media.codecs.probe import probe_all
from gateway.types import ImageFormat
from tests.fuzz.corpus import SOUND, VIDEO, corpus


def kind_of(data: bytes) -> str:
    try:
        return probe_all(data).format.value
    except GatewayError as error:
        return error.code


def test_every_format_has_seeds() -> None:
    kinds = {kind_of(data) for name, data in corpus().items() if not name.startswith((VIDEO, SOUND))}
    known = {form.value for form in ImageFormat}
    assert known - kinds <= {"svg", "pdf"}, "which the probe knows by name alone"
    assert {"svg", "pdf", "video-mp4", "video-webm", "sound-wav"} <= corpus().keys()


def test_seeds_are_small_and_the_same_every_time() -> None:
    first, second = corpus(), corpus()
    assert {name: len(data) for name, data in first.items() if not 16 < len(data) < 16_000} == {}
    assert {name for name in first if first[name] != second[name]} == set()
