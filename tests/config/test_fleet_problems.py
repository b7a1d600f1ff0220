"""Addresses of sources that are none, and names given twice."""

from __future__ import annotations

import pytest

from gateway.config.backends import BackendConfig, SourceConfig
from gateway.config.fleet_problems import backend_problems, source_problems


@pytest.mark.parametrize(
    "url",
    [
        "file:backends.yaml", "file:/etc/backends.yaml", "dns://vllm.prod.svc:8000", "dns://vllm:8000",
        "srv://_http._tcp.vllm.prod.svc", "kubernetes://prod/vllm:http", "kubernetes:///vllm", "kubernetes://prod/vllm:8000",
    ],
)  # fmt: skip
def test_addresses(url: str) -> None:
    assert source_problems([SourceConfig(url)]) == []


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "must begin with file:"),
        ("http://vllm:8000", "must begin with file:"),
        ("file:", "must name a file"),
        ("file://host/path", "must name a file"),
        ("dns://vllm", "must be dns://HOST:PORT"),
        ("dns://:8000", "must name a host"),
        ("dns://vllm:99999", "must have a port between 1 and 65535"),
        ("dns://vllm:8000/v1", "must name a host"),
        ("srv://_http._tcp.vllm:8000", "must have no port"),
        ("kubernetes://prod", "must name one service"),
        ("kubernetes://prod/a/b", "must name one service"),
    ],
)
def test_addresses_that_are_none(url: str, problem: str) -> None:
    (told,) = source_problems([SourceConfig(url)])
    assert told.startswith("settings: sources.0.url: ")
    assert problem in told


def test_a_selector_stands_for_a_service() -> None:
    assert source_problems([SourceConfig("kubernetes://prod/:http", selector="app=vllm")]) == []
    assert source_problems([SourceConfig("kubernetes://prod/vllm", selector="app=vllm")]) != []


def test_what_means_nothing_there_is_told() -> None:
    (told,) = source_problems([SourceConfig("dns://vllm:8000", token_file="t")])
    assert told == "settings: sources.0.token_file: means nothing for dns:"
    (told,) = source_problems([SourceConfig("file:f", nameservers=("10.0.0.53",))])
    assert told == "settings: sources.0.nameservers: means nothing for file:"
    (told,) = source_problems([SourceConfig("dns://vllm:8000", backend=BackendConfig(url="http://x"))])
    assert "no url and no name" in told


def test_names_are_given_once() -> None:
    twice = [SourceConfig("dns://a:1", name="x"), SourceConfig("dns://b:1", name="x")]
    assert source_problems(twice) == ["settings: sources.1: x is given twice; give each source a name of its own"]
    same = [BackendConfig("http://a"), BackendConfig("http://a")]
    assert backend_problems(same, "f: backends") == [
        "f: backends.1: a is given twice; give each backend a name of its own"
    ]


@pytest.mark.parametrize(
    ("url", "name", "problem"),
    [
        ("http://[::1", None, "url: must be an http:// or https:// URL, or unix:///path: Invalid IPv6 URL"),
        ("http://h:99999", None, "url: must be an http:// or https:// URL, or unix:///path: Port out of range 0-65535"),
        ("http://h:0", None, "url: must have a port between 1 and 65535"),
        ("http://h?x=1", None, "url: must be an http:// or https:// URL, or unix:///path without ? and #"),
        ("ftp://u:secret@h", None, "url: holds credentials; they belong into api_key"),
        ("http://u:half/secret@h", None, "url: holds credentials; they belong into api_key"),
        ("http://h", "a\nb", "name: must be at most 255 printable characters, not 'a\\nb'"),
        ("http://h", "\ud800", "name: must be at most 255 printable characters"),
        ("http://h", "x" * 256, "name: must be at most 255 printable characters"),
    ],
)
def test_backends_that_no_request_could_reach_or_name(url: str, name: str | None, problem: str) -> None:
    (told,) = backend_problems([BackendConfig(url, name=name)], "f: backends")
    assert told.startswith(f"f: backends.0.{problem}")
    assert "secret" not in told


@pytest.mark.parametrize(
    ("backend", "problem"),
    [
        (BackendConfig("unix:engine.sock"), "url: must be an http:// or https:// URL, or unix:///path"),
        (
            BackendConfig("http://a", lend_affinity="a b"),
            "lend_affinity: must be sglang-router, vllm-router or the name",
        ),
        (BackendConfig("http://a", kv_events="udp://a:5557"), "kv_events: must be tcp://host:port, or off"),
        (BackendConfig("http://a", kv_events_replay="tcp://a"), "kv_events_replay: must be tcp://host:port, or off"),
        (BackendConfig("http://a", tls_server_name="b"), "tls_server_name: means nothing for http"),
        (BackendConfig("https://a", tls_key_file="key.pem"), "tls_key_file: needs tls_cert_file"),
    ],
)
def test_values_that_hold_for_no_engine(backend: BackendConfig, problem: str) -> None:
    (told,) = backend_problems([backend], "settings: backends")
    assert told.startswith(f"settings: backends.0.{problem}")


@pytest.mark.parametrize("server", ["10.0.0.2", "10.0.0.2:53", "fd00::2", "[fd00::2]", "[fd00::2]:5353"])
def test_nameservers(server: str) -> None:
    assert source_problems([SourceConfig("dns://vllm:8000", nameservers=(server,))]) == []


@pytest.mark.parametrize("server", ["one.one", "10.0.0.2:dns", "10.0.0.2:99999", "[fd00::2", ""])
def test_nameservers_that_are_none(server: str) -> None:
    (told,) = source_problems([SourceConfig("dns://vllm:8000", nameservers=(server,))])
    assert told == f"settings: sources.0.nameservers: must be an address or address:port, not {server!r}"


def test_a_key_that_no_header_can_hold() -> None:
    (told,) = backend_problems([BackendConfig("http://h", api_key="secret\r\nx: y")], "f: backends")
    assert told == "f: backends.0.api_key: must be printable ASCII, as a header holds it"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (SourceConfig("dns://v:0"), "url: must have a port between 1 and 65535"),
        (SourceConfig("kubernetes:///v", api_server="here"), "api_server: must be an http:// or https:// URL"),
    ],
)
def test_whom_nobody_could_ask(source: SourceConfig, problem: str) -> None:
    (told,) = source_problems([source])
    assert told.startswith(f"settings: sources.0.{problem}")
