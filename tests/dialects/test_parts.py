"""What the two APIs of OpenAI differ in; what chat takes in all its shapes is in test_openai_chat."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.dialects.parts import PartReader
from gateway.errors import InvalidRequest
from gateway.types import ImageForm, ImagePart, LongString, OtherMedium, Span

URL = "https://example.com/a.png"
AT = ("input", 3, "content")


def reader(*, one_form: bool = False) -> PartReader:
    return PartReader(frozenset({"image_url", "input_image"}), one_form=one_form)


def image_of(part: dict[str, Any], *, one_form: bool = False) -> ImagePart:
    found = reader(one_form=one_form)
    found.content(AT, [part])
    (image,) = found.images
    assert (image.part, image.form) == ((*AT, 0), ImageForm.DATA_URL)
    return image


def test_a_bare_source_stays_bare_or_gets_the_one_form() -> None:
    part = {"type": "input_image", "image_url": URL, "detail": "low"}
    kept, wrapped = image_of(part), image_of(part, one_form=True)
    assert kept.pointer == wrapped.pointer == (*AT, 0, "image_url")
    assert (kept.wrap, kept.retype, kept.detail) == (False, False, "low")
    assert (wrapped.wrap, wrapped.retype, wrapped.detail) == (True, True, "low")


def test_a_source_in_an_object_is_found_where_it_is() -> None:
    for one_form in (True, False):
        image = image_of({"type": "image_url", "image_url": {"url": URL, "detail": "high"}}, one_form=one_form)
        assert (image.pointer, image.wrap, image.retype, image.detail) == (
            (*AT, 0, "image_url", "url"),
            False,
            False,
            "high",
        )


def test_text_and_other_media_are_noted() -> None:
    found = reader()
    long = LongString(Span(0, 700), has_escapes=False, text_byte_count=690)
    found.content(AT, "four")
    found.content(AT, None)
    found.content(AT, ["é", long, {"type": "refusal", "refusal": "no"}, {"type": "file", "file": {"file_id": "f"}}])
    assert found.text_bytes == 4 + 2 + 690 + 2
    assert found.other_media == [OtherMedium("input.3.content.3.file", is_inline=True)]


def test_an_engines_fields_are_noted_beside_and_inside() -> None:
    image = image_of({"type": "image_url", "image_url": {"url": URL, "content_hash": "h"}, "uuid": "u"})
    assert image.foreign_fields == ("uuid", "image_url.content_hash")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (7, "input.3.content"),
        ([None], "input.3.content.0"),
        ([{"type": []}], "input.3.content.0.type"),
        ([{"type": "image_embeds"}], "input.3.content.0"),
        ([{"image_embeds": "AA=="}], "input.3.content.0"),
        ([{"type": "input_image"}], "input.3.content.0.image_url"),
        ([{"type": "input_image", "image_url": ""}], "input.3.content.0.image_url"),
    ],
)
def test_what_is_misshapen_is_named(content: Any, part: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        reader().content(AT, content)
    assert raised.value.part == part
