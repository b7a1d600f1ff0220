"""Chat requests as small as they can be, and what the answers say about tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.engine.pictures import data_url

QUESTION = "What is in the image?"
# A vision start and a vision end around every image (the models' chat template).
WRAPPER_TOKENS = 2


def content(*files: bytes, text: str = QUESTION) -> list[dict[str, Any]]:
    """Images, then the question."""
    images = [{"type": "image_url", "image_url": {"url": data_url(file)}} for file in files]
    return [*images, {"type": "text", "text": text}]


def body(model: str, *files: bytes, **fields: object) -> dict[str, Any]:
    """One user message; greedy, one token, with its logprobs."""
    messages = [{"role": "user", "content": content(*files)}]
    return {"model": model, "messages": messages, "max_tokens": 1, "temperature": 0, **fields}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a completion's answer tells."""

    headers: httpx.Headers
    document: dict[str, Any]

    @property
    def estimated_image_tokens(self) -> int:
        """The gateway's word."""
        return int(self.headers["x-vlmgw-image-tokens"])

    @property
    def original_image_tokens(self) -> int:
        """The gateway's word on the picture as it came."""
        return int(self.headers["x-vlmgw-image-tokens-original"])

    @property
    def images(self) -> str:
        """How many were passed, shrunk and recoded."""
        return self.headers["x-vlmgw-images"]

    @property
    def image_tokens(self) -> int:
        """The engine's word."""
        details = self.document["usage"]["prompt_tokens_details"]
        return int(details["multimodal_tokens"]["image"])

    @property
    def prompt_tokens(self) -> int:
        return int(self.document["usage"]["prompt_tokens"])

    @property
    def logprobs(self) -> list[float]:
        """Of the likeliest tokens of the first step, by token id order of their strings: the picture's fingerprint."""
        first = self.document["choices"][0]["logprobs"]["content"][0]
        return [entry["logprob"] for entry in sorted(first["top_logprobs"], key=lambda entry: str(entry["bytes"]))]

    @property
    def answer(self) -> tuple[str, list[float]]:
        """The whole answer's text and its logprobs."""
        choice = self.document["choices"][0]
        return choice["message"]["content"], [entry["logprob"] for entry in choice["logprobs"]["content"]]


def ask(url: str, request: dict[str, Any], *, task: str | None = None) -> Answer:
    """Send a request that must succeed."""
    headers = {} if task is None else {"x-vlmgw-task": task}
    response = httpx.post(f"{url}/v1/chat/completions", json=request, headers=headers, timeout=120, trust_env=False)
    assert response.status_code == httpx.codes.OK, response.text
    return Answer(response.headers, response.json())


def text_tokens(url: str, messages: Sequence[dict[str, Any]], model: str) -> int:
    """Tokens of the same messages without their images, as the engine counts them."""
    plain = [
        {**message, "content": [part for part in message["content"] if part["type"] == "text"]}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]
    response = httpx.post(
        f"{url}/tokenize", json={"model": model, "messages": plain}, timeout=60, trust_env=False
    ).raise_for_status()
    return int(response.json()["count"])
