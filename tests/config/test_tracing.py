"""A collector's address and its headers, as written, and what is wrong with them."""

from __future__ import annotations

import pytest

from gateway.config.settings import Settings
from gateway.config.sources import load_settings, masked
from gateway.config.tracing import TracingConfig, header_pairs, traces_url, tracing_problems


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://c:4318", "http://c:4318/v1/traces"),
        ("http://c:4318/", "http://c:4318/v1/traces"),
        ("https://c/otlp", "https://c/otlp/v1/traces"),
        ("https://c/v1/traces", "https://c/v1/traces"),
    ],
)
def test_the_path_is_added_once(written: str, url: str) -> None:
    assert traces_url(written) == url


def test_headers_are_pairs() -> None:
    assert header_pairs("Authorization=Basic%20YTpi%3D, X-Scope = a=b,") == {
        "Authorization": "Basic YTpi=",
        "X-Scope": "a=b",
    }
    assert header_pairs(None) == {}


@pytest.mark.parametrize("written", ["secret", "a=x,b c=1", "a=%0d%0aX: secret", "ä=1"])
def test_a_header_that_is_none_is_told_without_its_value(written: str) -> None:
    (problem,) = tracing_problems(TracingConfig(otlp_endpoint="http://c", headers=written))
    assert problem.startswith("settings: tracing.headers: header ")
    assert "secret" not in problem


@pytest.mark.parametrize("endpoint", ["c:4318", "grpc://c:4317", "http://", "http://u:p@c", "http://c?x=1"])
def test_an_address_that_is_none_is_told(endpoint: str) -> None:
    (problem,) = tracing_problems(TracingConfig(otlp_endpoint=endpoint))
    assert problem.startswith("settings: tracing.otlp_endpoint: ")


def test_headers_without_an_address_are_a_mistake() -> None:
    assert tracing_problems(TracingConfig(headers="a=b")) == ["settings: tracing.headers: needs otlp_endpoint"]
    assert tracing_problems(Settings().tracing) == []


def test_the_environment_sets_it_and_nobody_is_shown_the_headers() -> None:
    environment = {"VLMGW_TRACING_OTLP_ENDPOINT": "http://c:4318", "VLMGW_TRACING_HEADERS": "a=hidden"}
    settings = load_settings(environment=environment)
    assert settings.tracing.headers == "a=hidden"
    assert masked(settings)["tracing"]["headers"] == "***"
