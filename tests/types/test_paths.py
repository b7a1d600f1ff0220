"""Engines' administration is recognised however deep, and a path with a second spelling is no plain one."""

from __future__ import annotations

import pytest

from gateway.types.paths import ADMIN_PATHS, is_admin_path, is_plain_path


@pytest.mark.parametrize("path", [*sorted(ADMIN_PATHS), "/metrics/", "/METRICS", "/collective_rpc/x", "/-/reload"])
def test_administration_is_recognised(path: str) -> None:
    assert is_admin_path(path)


@pytest.mark.parametrize("path", ["/v1/realtime", "/metrics2", "/v1/metrics", "/pausen"])
def test_the_rest_is_none(path: str) -> None:
    assert not is_admin_path(path)


@pytest.mark.parametrize(
    "path", ["/v1/%6Detrics", "//metrics", "/a/../metrics", "/a/./b", "/a;b", "a", "/a b", "/a\\b", "/é"]
)
def test_second_spellings_are_not_plain(path: str) -> None:
    assert not is_plain_path(path)


def test_plain_paths_are() -> None:
    assert is_plain_path("/v1/audio/speech_2.0~x")
