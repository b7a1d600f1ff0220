"""Backends as configured: names, roots, and URLs that cannot be meant."""

from __future__ import annotations

import pytest

from gateway.upstream.settings import BackendSettings, UpstreamSettings


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://gpu-1:8000", "http://gpu-1:8000"),
        ("http://gpu-1:8000/", "http://gpu-1:8000"),
        ("http://gpu-1:8000/v1", "http://gpu-1:8000"),
        ("https://gpu-1/engines/a/v1/", "https://gpu-1/engines/a"),
    ],
)
def test_the_root_is_what_paths_are_appended_to(url: str, root: str) -> None:
    assert BackendSettings(url).root == root


def test_a_name_defaults_to_host_and_port() -> None:
    assert BackendSettings("http://gpu-1:8000/v1").backend_name == "gpu-1:8000"
    assert BackendSettings("http://gpu-1:8000", name="left").backend_name == "left"


@pytest.mark.parametrize("url", ["gpu-1:8000", "ftp://gpu-1", "http://", "http://a?x=1", "http://a#b", "http://u:p@a"])
def test_a_url_that_is_no_root_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        BackendSettings(url)


@pytest.mark.parametrize("name", ["a\nb", "a\x7f", "\ud800", "x" * 256])
def test_a_name_that_no_header_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a backend's name has at most 255 printable characters"):
        BackendSettings("http://a", name=name)
    BackendSettings("http://a", name="größe 1")


@pytest.mark.parametrize("url", ["http://a:0", "http://a:99999"])
def test_a_port_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"[Pp]ort"):
        BackendSettings(url)


def test_two_backends_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="'same'"):
        UpstreamSettings((BackendSettings("http://a", name="same"), BackendSettings("http://b", name="same")))


def test_keys_are_not_shown() -> None:
    assert "secret" not in repr(BackendSettings("http://a", api_key="secret"))


def test_a_router_is_named_or_its_header_is() -> None:
    found = [BackendSettings("http://a", lend_affinity=name).affinity_header for name in (
        None, "sglang-router", "vllm-router", "X-Hash-Key",
    )]  # fmt: skip
    assert found == [None, "x-smg-routing-key", "x-session-id", "x-hash-key"]
    with pytest.raises(ValueError, match="lend_affinity"):
        BackendSettings("http://a", lend_affinity="no header")
