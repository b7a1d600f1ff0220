"""Who sends a request: a program, our own page, or another site's."""

from __future__ import annotations

import pytest

from gateway.api.pages import is_foreign_page, is_of_host, may_be_rebound


@pytest.mark.parametrize(
    ("origin", "fetch_site", "host", "foreign"),
    [
        (None, None, "h:1", False),  # a program
        (None, "none", "h:1", False),  # an address that somebody typed
        ("http://h:1", "same-origin", "h:1", False),
        ("http://H:1", None, "h:1", False),
        ("http://h:2", None, "h:1", True),
        ("http://h:1", "cross-site", "h:1", True),
        (None, "same-site", "h:1", True),
        ("null", None, "h:1", True),  # a sandboxed frame, a file
        ("http://", None, "", True),
        ("http://[", None, "[", True),
        ("http://[h]:1", None, "[h]:1", True),
    ],
)
def test_a_page_of_another_site_is_told(origin: str | None, fetch_site: str | None, host: str, foreign: bool) -> None:
    assert is_foreign_page(origin, fetch_site, host) is foreign


@pytest.mark.parametrize(
    ("host", "may_be"),
    [
        ("127.0.0.1:9464", False),
        ("[::1]:9464", False),
        ("localhost:9464", False),
        ("gateway.localhost", False),
        ("10.0.0.7", False),
        ("evil.example:9464", True),
        ("localhost.evil.example", True),
        ("[", True),
        ("[localhost]", True),
        ("", True),
    ],
)
def test_only_names_can_be_made_to_lead_here(host: str, may_be: bool) -> None:
    assert may_be_rebound(f"http://{host}", host) is may_be
    assert not may_be_rebound(None, host)


def test_a_page_is_of_the_host_that_served_it() -> None:
    assert is_of_host("https://gw.example:8443", "gw.example:8443")
    assert not is_of_host("https://gw.example", "gw.example:8443")
    assert not is_of_host("https://gw.example.evil", "gw.example")
