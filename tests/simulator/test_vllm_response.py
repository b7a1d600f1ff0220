from __future__ import annotations

import pytest

from gateway.simulator import vllm_response as shape
from gateway.simulator.core import Usage
from gateway.simulator.refusal import Refusal


def test_the_error_envelope() -> None:
    assert shape.error(Refusal(400, "why", param="image")) == {
        "error": {"message": "why", "type": "BadRequestError", "param": "image", "code": 400}
    }
    assert shape.lost()["error"] == {
        "message": "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "type": "InternalServerError",
        "param": None,
        "code": 500,
    }


@pytest.mark.parametrize(("image_tokens", "multimodal"), [(300, {"image": 300}), (0, None)])
def test_usage_details(image_tokens: int, multimodal: dict[str, int] | None) -> None:
    counted = Usage(322, 4, 256, 0, image_tokens)
    assert shape.usage(counted, with_details=True) == {
        "prompt_tokens": 322,
        "total_tokens": 326,
        "completion_tokens": 4,
        "prompt_tokens_details": {
            "cached_tokens": 256,
            "created_cache_tokens": 0,
            "multimodal_tokens": multimodal,
        },
        "completion_tokens_details": None,
    }
    assert shape.usage(counted, with_details=False)["prompt_tokens_details"] is None


def test_the_load_header_in_both_formats() -> None:
    assert shape.load_header(2, 0.5, "json") == (
        'JSON {"named_metrics": {"num_requests_waiting": 2.0, "kv_cache_usage_perc": 0.5}}'
    )
    assert shape.load_header(2, 0.5, "text").startswith("TEXT named_metrics.num_requests_waiting=2.0, ")


def test_the_model_list_has_what_discovery_reads() -> None:
    listed = shape.model_list("m", "/models/m", 1, 4096)
    assert isinstance(listed["data"], list)
    card = listed["data"][0]
    assert isinstance(card, dict)
    assert (card["id"], card["root"], card["max_model_len"], card["owned_by"]) == ("m", "/models/m", 4096, "vllm")
