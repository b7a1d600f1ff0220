"""A small picture through every native step: the steps run, and only such as fit together are summed."""

from __future__ import annotations

from dataclasses import replace

import imagecodecs
import numpy as np
import pytest

from benchmarks.native import Steps, native_steps
from benchmarks.timing import Timing, interleave
from gateway.media.codecs.probe import probe_all
from gateway.types import Fidelity, ImageFormat, Size
from tests.media.codecs.samples import jpeg, oriented_jpeg, plan_for, png, quarters, webp

PICTURE = quarters(160, 96)
RGBA = np.dstack((PICTURE, np.full((96, 160), 128, np.uint8)))


def test_the_chain_is_the_fastest_that_fits() -> None:
    steps = Steps({"RGB": {"a": int}, "RGBX": {"b": int}}, {"RGB": {"r": int}, "RGBX": {"r": int}}, {"e": int})
    took = {"decode: a RGB": 1, "decode: b RGBX": 2, "resize: r RGB": 9, "resize: r RGBX": 3, "encode: e": 1}
    assert set(steps.contenders()) == set(took)
    best = steps.best({name: Timing(ms, ms) for name, ms in took.items()})
    assert {step: way for step, (way, _) in best.items()} == {"decode": "b RGBX", "resize": "r RGBX", "encode": "e"}


@pytest.mark.parametrize(
    ("data", "written"),
    [
        (jpeg(PICTURE), ImageFormat.JPEG),
        (jpeg(PICTURE[:, :, 0], mode="L"), ImageFormat.JPEG),
        (oriented_jpeg(6, pixels=PICTURE), ImageFormat.JPEG),
        (png(PICTURE), ImageFormat.PNG),
        (png(PICTURE[:, :, 0]), ImageFormat.PNG),
        (png(PICTURE.astype(np.uint16) * 257), ImageFormat.PNG),
        (png(RGBA), ImageFormat.PNG),
        (webp(PICTURE), ImageFormat.JPEG),
        (bytes(imagecodecs.avif_encode(PICTURE, numthreads=1)), ImageFormat.JPEG),
    ],
)
def test_every_class_has_all_three_steps(data: bytes, written: ImageFormat) -> None:
    probe = probe_all(data)
    target = Size(32, 48) if probe.orientation == 6 else Size(64, 32)
    for fidelity in Fidelity:
        steps = native_steps(data, probe, replace(plan_for(target), fidelity=fidelity), written)
        assert set(steps.best(interleave(steps.contenders(), rounds=1))) == {"decode", "resize", "encode"}
