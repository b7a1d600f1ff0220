from __future__ import annotations

import PIL

from gateway.media.codecs import available_backends, describe
from gateway.media.codecs.inspection import inspect_libraries, simd_level


def test_libraries_are_described() -> None:
    found = inspect_libraries()
    assert found["pil"] == PIL.__version__
    assert set(found["fingerprints"]) == set(available_backends())  # type: ignore[call-overload]
    assert isinstance(found["resize_ms"], float)
    assert found["simd"] == simd_level()


def test_the_simd_level_is_that_of_the_build() -> None:
    assert (simd_level() == "none") is (".post" not in PIL.__version__)


def test_doctor_gets_everything_at_once() -> None:
    assert {"available", "default", "fingerprints", "libvips", "simd"} <= set(describe())
