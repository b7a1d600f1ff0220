"""The headers that accompany an error."""

from __future__ import annotations

import pytest

from gateway.api.problems import error_headers
from gateway.errors import (
    BackendLost,
    GatewayError,
    KvBudgetExhausted,
    NotJson,
    RateExceeded,
    UnsupportedEncoding,
    all_errors,
)
from gateway.types import RequestId


def headers(error: GatewayError) -> dict[str, str]:
    found = error_headers(error, RequestId("r1"))
    assert len(dict(found)) == len(found)
    return dict(found)


def test_every_error_names_itself_and_its_request() -> None:
    assert headers(NotJson()) == {"x-request-id": "r1", "x-vlmgw-error": "not_json"}


@pytest.mark.parametrize(
    ("retry_after_s", "seconds", "milliseconds"),
    [(0.0, "1", "1"), (-3.0, "1", "1"), (0.25, "1", "250"), (1.0, "1", "1000"), (1.2, "2", "1200"),
     (90.0, "90", "90000")],
)  # fmt: skip
def test_when_to_come_back(retry_after_s: float, seconds: str, milliseconds: str) -> None:
    found = headers(KvBudgetExhausted(retry_after_s=retry_after_s))
    assert (found["Retry-After"], found["retry-after-ms"]) == (seconds, milliseconds)


def test_which_rule_refused_and_how_the_tenant_stands() -> None:
    error = RateExceeded(rule="rates.images", retry_after_s=3.0)
    error.headers = (("x-ratelimit-remaining-images", "0"),)
    found = headers(error)
    assert (found["x-vlmgw-rule"], found["x-ratelimit-remaining-images"]) == ("rates.images", "0")


def test_sdks_are_told_not_to_repeat_what_may_have_run() -> None:
    assert headers(BackendLost())["x-should-retry"] == "false"


def test_a_refused_coding_names_the_accepted_one() -> None:
    assert headers(UnsupportedEncoding())["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: error.code)
def test_nothing_private_is_in_a_header(error: type[GatewayError]) -> None:
    assert "private" not in str(headers(error("public", detail="private", part="p", rule="r")))
