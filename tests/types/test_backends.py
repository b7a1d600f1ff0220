"""What a request asks of a backend."""

from __future__ import annotations

from gateway.types import RequestCost


def test_a_request_holds_its_prompt_and_its_output() -> None:
    assert RequestCost(prompt_tokens=900, output_tokens=100, encode_patches=3_520).kv_tokens == 1_000
