from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.routing.filters.limits import LIMITS, is_within_limits
from tests.routing.fields import asking, view


@pytest.mark.parametrize(
    ("facts", "prompt_tokens", "kept"),
    [
        ({"inflight_requests": 100, "queued_prefill_tokens": 10**6}, 10**6, True),  # no limits
        ({"max_requests": 2, "inflight_requests": 1}, 1, True),
        ({"max_requests": 2, "inflight_requests": 2}, 1, False),
        ({"max_prefill_tokens": 100, "queued_prefill_tokens": 60}, 40, True),
        ({"max_prefill_tokens": 100, "queued_prefill_tokens": 60}, 41, False),
        ({"max_prefill_tokens": 100}, 101, True),  # alone
    ],
)
def test_who_is_within_limits(facts: dict[str, Any], prompt_tokens: int, kept: bool) -> None:
    assert is_within_limits(view("a", **facts), prompt_tokens) is kept
    assert LIMITS.keeps(view("a", **facts), replace(asking(), prompt_tokens=prompt_tokens)) is kept
