from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from gateway.media.cost import expected_s, kind_of, predicted_bytes
from gateway.media.messages import Bytes, Examine, ExamineClip, Measure, Prepare, PrepareClip
from gateway.types import Change, ClipPlan, ClipProbe, ColourModel, Container, ImageFormat, MediumKind, Probe, Size

PHOTO = Probe(ImageFormat.JPEG, Size(4032, 3024))
TARGET = Size(1312, 960)
MIB = 1024 * 1024


def prepare(kit: Any, probe: Probe, *changes: Change) -> Prepare:
    return Prepare(
        Bytes(0, 3_000_000, is_text=True, has_escapes=False), kit.plan(*changes, target=TARGET), probe, 1, False
    )


def test_a_photograph_takes_about_what_was_measured(kit: Any) -> None:
    assert 0.07 < expected_s(prepare(kit, PHOTO)) < 0.11
    assert 60 * MIB < predicted_bytes(prepare(kit, PHOTO)) < 80 * MIB


def test_scans_bit_depth_and_format_cost_more(kit: Any) -> None:
    plain = prepare(kit, PHOTO)
    progressive = prepare(kit, replace(PHOTO, progressive=True, scans=10))
    assert expected_s(progressive) > 1.5 * expected_s(plain)
    assert predicted_bytes(progressive) > 1.8 * predicted_bytes(plain)
    png = prepare(kit, replace(PHOTO, format=ImageFormat.PNG))
    deep = prepare(kit, replace(PHOTO, format=ImageFormat.PNG, bits_per_sample=16))
    assert predicted_bytes(plain) < predicted_bytes(png) < predicted_bytes(deep)


def test_a_large_photograph_is_shrunk_on_load(kit: Any) -> None:
    large = prepare(kit, replace(PHOTO, raster=Size(8064, 6048)))
    assert predicted_bytes(large) < 2 * predicted_bytes(prepare(kit, PHOTO))


def test_without_pixels_only_the_text_counts(kit: Any) -> None:
    where = Bytes(0, 3_000_000, is_text=True, has_escapes=False)
    kept = prepare(kit, PHOTO, Change.DATA_URL)
    examine = Examine(where, b"", 1, 1)
    assert expected_s(kept) == expected_s(examine) < 0.01
    assert predicted_bytes(kept) == predicted_bytes(examine) == 6_000_000
    escaped = Examine(Bytes(0, 3_000_000, is_text=True, has_escapes=True), b"", 1, 1)
    assert predicted_bytes(escaped) == 12_000_000


def test_a_videos_frames_cost_by_what_lies_before_the_last_of_them() -> None:
    where = Bytes(0, 1_000_000, is_text=True, has_escapes=False)
    probe = ClipProbe(Container.MP4, 60.0, Size(1920, 1080), 1800, 30.0, "h264")

    def question(*indices: int) -> PrepareClip:
        plan = ClipPlan("v", Size(640, 352) if indices else None, indices)
        return PrepareClip(where, MediumKind.VIDEO, False, plan, probe, 10**8, 10.0)

    early, late, file = question(0, 30), question(0, 1700), question()
    assert expected_s(late) > 10 * expected_s(early) > expected_s(file) > 0
    assert predicted_bytes(late) > 1920 * 1080 * 16 > predicted_bytes(file)
    header = ExamineClip(where, MediumKind.VIDEO, False, b"", 10**8, 10**8)
    sound = ExamineClip(where, MediumKind.AUDIO, False, b"", 10**8, 10**8)
    assert expected_s(header) > 0
    assert predicted_bytes(header) > predicted_bytes(sound)


def test_frames_cost_those_before_them_and_pages_do_not(kit: Any) -> None:
    animation = prepare(kit, Probe(ImageFormat.GIF, Size(400, 300), frames=9))
    ninth = msgspec.structs.replace(animation, plan=replace(animation.plan, frame=8))
    assert expected_s(ninth) > 2 * expected_s(animation)
    document = prepare(kit, Probe(ImageFormat.TIFF, Size(400, 300), frames=9))
    assert expected_s(msgspec.structs.replace(document, plan=replace(document.plan, frame=8))) == expected_s(document)


def test_the_slow_and_the_hungry_are_known(kit: Any) -> None:
    heic, avif, jpeg2000 = (
        prepare(kit, replace(PHOTO, format=kind)) for kind in (ImageFormat.HEIC, ImageFormat.AVIF, ImageFormat.JPEG2000)
    )
    assert expected_s(heic) > 2 * expected_s(avif)
    assert predicted_bytes(jpeg2000) > 2 * predicted_bytes(avif)


def test_measuring_costs_by_what_is_decoded() -> None:
    where = Bytes(0, 3_000_000, is_text=True, has_escapes=False)

    def measure(**changes: Any) -> Measure:
        return Measure(where, replace(PHOTO, **changes), 1)

    photo, png = measure(), measure(format=ImageFormat.PNG)
    assert 0.04 < expected_s(photo) < 0.07 < expected_s(png)
    assert predicted_bytes(photo) < 20 * MIB < 140 * MIB < predicted_bytes(png)
    progressive = measure(progressive=True, scans=10)
    assert expected_s(progressive) > expected_s(photo)
    assert predicted_bytes(progressive) > predicted_bytes(photo) + 4 * PHOTO.raster.pixels
    assert predicted_bytes(measure(colour=ColourModel.CMYK)) > predicted_bytes(photo)
    assert kind_of(photo) != kind_of(png)
