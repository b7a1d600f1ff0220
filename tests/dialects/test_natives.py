"""``image_data`` and its like in every shape that SGLang takes."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.dialects.inputs import InputReader
from gateway.dialects.natives import read_media
from gateway.errors import InvalidRequest
from gateway.types import ImageForm, MediumKind

URL = "https://example.com/a.png"
DATA = "data:image/png;base64,iVBORw0KGgo="
BARE = "iVBORw0KGgo="


def read(**body: Any) -> tuple[InputReader, list[tuple[str | int, ...]]]:
    reader = InputReader()
    return reader, read_media(reader, body)


@pytest.mark.parametrize(
    ("value", "pointers"),
    [
        (DATA, [()]),
        (BARE, [()]),
        ({"url": URL}, [("url",)]),
        ([URL, BARE], [(0,), (1,)]),
        ([[URL], [DATA, {"url": BARE}]], [(0, 0), (1, 0), (1, 1, "url")]),
        ([None, URL, []], [(1,)]),
        (None, []),
    ],
)
def test_every_shape_of_images(value: Any, pointers: list[tuple[str | int, ...]]) -> None:
    reader, _ = read(image_data=value)
    assert [part.pointer for part in reader.parts.images] == [("image_data", *pointer) for pointer in pointers]
    assert all(part.is_fixed and part.form is ImageForm.EITHER for part in reader.parts.images)


def test_an_object_keeps_its_detail_and_loses_what_is_the_engines() -> None:
    reader, foreign = read(image_data=[{"url": URL, "detail": "low", "content_hash": "sha256:00", "uuid": "x"}])
    (part,) = reader.parts.images
    assert (part.detail, part.part, part.name) == ("low", ("image_data", 0), "image_data.0")
    assert foreign == [("image_data", 0, "content_hash"), ("image_data", 0, "uuid")]


def test_videos_and_sounds_are_noted_by_their_kind() -> None:
    reader, _ = read(video_data="https://example.com/v.mp4", audio_data=[{"url": DATA}])
    assert [(medium.name, medium.kind) for medium in reader.parts.other_media] == [
        ("video_data", MediumKind.VIDEO),
        ("audio_data.0.url", MediumKind.AUDIO),
    ]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"image_data": {"format": "processor_output", "url": URL}}, "image_data"),
        ({"image_data": [{"format": "precomputed_embedding", "feature": [1]}]}, "image_data.0"),
        ({"image_data": [[[URL]]]}, "image_data.0.0"),
        ({"image_data": 7}, "image_data"),
        ({"image_data": [""]}, "image_data.0"),
        ({"image_data": {"url": ""}}, "image_data.url"),
        ({"video_data": {"format": "x"}}, "video_data"),
    ],
)
def test_tensors_and_nonsense_are_refused_by_name(body: dict[str, Any], part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**body)
    assert caught.value.part == part
