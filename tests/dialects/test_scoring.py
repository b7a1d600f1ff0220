"""Scores and reranks: which sides are compared, and how often their texts count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.dialects import dialect_of
from gateway.dialects.scoring import Scoring
from gateway.errors import InvalidRequest, TooManyImages
from gateway.types import Answer, Call, RequestId, Usage

SCORING = Scoring()
URL = "https://example.com/a.png"
PICTURE = {"content": [{"type": "image_url", "image_url": {"url": URL}}, {"type": "text", "text": "ab"}]}


def read(**body: Any) -> Call:
    return SCORING.read({"model": "m", **body})


def test_every_path_is_known() -> None:
    for path in SCORING.paths:
        assert dialect_of(path) == SCORING


@pytest.mark.parametrize(
    ("first", "second"),
    [("text_1", "text_2"), ("data_1", "data_2"), ("queries", "documents"), ("queries", "items"), ("query", "items")],
)
def test_one_text_is_read_with_each_of_the_others(first: str, second: str) -> None:
    assert read(**{first: "abc", second: ["d", "e"]}).text_bytes == 3 * 2 + 2
    assert read(**{first: "abc", second: "d"}).text_bytes == 3 + 1
    assert read(**{first: ["abc", "x"], second: ["d", "e"]}).text_bytes == 4 + 2
    assert read(**{first: [1, 2, 3], second: ["d", "e"]}).token_ids == 6


def test_images_count_once() -> None:
    call = read(query=PICTURE, documents=["a", PICTURE])
    assert [image.name for image in call.images] == ["query.content.0.image_url", "documents.1.content.0.image_url"]
    assert call.prompt_field == "documents"
    listed = read(query=PICTURE["content"], documents=[PICTURE["content"]])
    assert [image.name for image in listed.images] == ["query.0.image_url", "documents.0.0.image_url"]


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(query="a", documents=[{"content": [{"type": "image_url", "image_url": None}]}])
    assert caught.value.part == "documents.0.content.0.image_url"


def test_usage_errors_and_answers() -> None:
    tail = b'{"id":"rerank-1","usage":{"prompt_tokens":12,"total_tokens":12},"results":[]}'
    assert SCORING.usage(tail, streamed=False) == Usage(12, 0)
    assert SCORING.answer({"results": []}) == Answer()
    assert json.loads(SCORING.error_body(TooManyImages(part="query"), RequestId("r")))["error"]["param"] == "query"
    assert SCORING.stream_error(TooManyImages(), RequestId("r")).startswith(b"data: ")
