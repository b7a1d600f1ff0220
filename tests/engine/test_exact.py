"""With the model's tokenizer the whole prompt is known beforehand: a hundred sizes, mixed with text of many kinds."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from tests.engine.chat import ask, content
from tests.engine.conftest import Site
from tests.engine.pictures import drawn, png

TEXTS = (
    "What is in the image?",
    "",
    "Größe, prix, цена, 値段, السعر 12.345,67 €",
    "def f(x):\n    return {'a': [1, 2, 3]}\n" * 20,
    "  leading and trailing blanks  \n\n",
    "emoji 👩‍👩‍👧‍👦 and \u00a0 spaces\t tabs",
    '{"json": "with \\"quotes\\" and \\\\ strokes"}',
    "A long question. " * 300,
)


def sizes() -> list[tuple[int, int]]:
    sides = random.Random(11)
    return [(sides.randint(20, 900), sides.randint(20, 900)) for _ in range(100)]


def messages_of(index: int, size: tuple[int, int]) -> list[dict[str, Any]]:
    """One to four messages; every third request has a second picture, every fifth a system message."""
    files = [png(drawn(*size))] * (2 if index % 3 == 0 else 1)
    messages: list[dict[str, Any]] = [{"role": "user", "content": content(*files, text=TEXTS[index % len(TEXTS)])}]
    if index % 4 == 0:
        again = [{"role": "assistant", "content": "I see."}, {"role": "user", "content": TEXTS[(index + 1) % 8]}]
        messages += again
    if index % 5 == 0:
        messages.insert(0, {"role": "system", "content": "Answer briefly."})
    return messages


def test_a_hundred_sizes_mixed_with_text(site: Site, model: str) -> None:
    wrong = []
    for index, size in enumerate(sizes()):
        request = {"model": model, "messages": messages_of(index, size), "max_tokens": 1, "temperature": 0}
        answer = ask(site.gateway.url, request)
        predicted = int(answer.headers["x-vlmgw-prompt-tokens-estimate"])
        if (predicted, answer.estimated_image_tokens) != (answer.prompt_tokens, answer.image_tokens):
            wrong.append((index, size, predicted, answer.prompt_tokens))
    assert wrong == []


@pytest.mark.parametrize("text", TEXTS)
def test_text_alone(site: Site, model: str, text: str) -> None:
    request = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 1}
    answer = ask(site.gateway.url, request)
    assert int(answer.headers["x-vlmgw-prompt-tokens-estimate"]) == answer.prompt_tokens


def test_the_estimate_says_that_it_is_exact(site: Site, model: str) -> None:
    request = {"model": model, "messages": messages_of(0, (300, 200)), "max_tokens": 1}
    told = httpx.post(f"{site.gateway.url}/v1/estimate", json=request, timeout=60, trust_env=False).json()
    assert told["estimate"]["exact"]
    assert told["estimate"]["prompt_tokens"] == ask(site.gateway.url, request).prompt_tokens
