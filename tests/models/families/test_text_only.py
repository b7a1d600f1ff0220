from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.errors import InvalidRequest
from gateway.models.catalog import shipped_catalog
from gateway.models.families.text_only import TEXT_ONLY
from gateway.types import Size

LLAMA = shipped_catalog().find("meta-llama/Llama-3.1-8B-Instruct").checkpoint
SIZE = Size(640, 480)


def test_any_question_about_an_image_is_refused_by_name() -> None:
    questions: list[Callable[[], object]] = [
        lambda: TEXT_ONLY.image_tokens(SIZE, LLAMA),
        lambda: TEXT_ONLY.request_tokens([SIZE], LLAMA),
        lambda: TEXT_ONLY.engine_size(SIZE, LLAMA),
        lambda: TEXT_ONLY.normalised(SIZE, LLAMA),
        lambda: TEXT_ONLY.plan(SIZE, LLAMA),
    ]
    for ask in questions:
        with pytest.raises(InvalidRequest, match=r"Llama-3\.1-8B-Instruct takes no images"):
            ask()


def test_a_request_without_images_is_no_question() -> None:
    assert TEXT_ONLY.request_tokens([], LLAMA) == ()
