"""From an address to a backend."""

from __future__ import annotations

import pytest

from tests.upstream.sources.watching import template


def test_a_backend_has_what_all_have_and_its_own_address() -> None:
    backend = template().at("10.0.0.1", 8000)
    assert (backend.url, backend.name, backend.api_key) == ("http://10.0.0.1:8000", "10.0.0.1:8000", "k")
    assert template().at("fd00::1", 8000, "pod").url == "http://[fd00::1]:8000"
    assert template().at("h", 1, options={"models": "m"}).models == ("m",)


def test_a_name_on_the_certificate_is_for_https_only() -> None:
    assert template().at("h", 1, server_name="n").tls_server_name is None
    assert template(tls=True).at("h", 1, server_name="n").tls_server_name == "n"


def test_wrong_options_name_the_backend() -> None:
    with pytest.raises(ValueError, match="pod: bad"):
        template().at("h", 1, "pod", options={"bad": "1"})
