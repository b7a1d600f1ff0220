"""What the addresses of sources mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.assembly.finding import file_backends, named_sources, read_source_files
from gateway.assembly.wiring import backend_settings
from gateway.config.backends import BackendConfig, SourceConfig
from gateway.upstream.sources.dns import DnsSource
from gateway.upstream.sources.file import FileSource
from gateway.upstream.sources.kubernetes import SERVICE_ACCOUNT, Cluster, KubernetesSource, Selection

PLAIN = BackendConfig(api_key="k")


def kubernetes(source: SourceConfig) -> KubernetesSource:
    (named,) = named_sources([source], backend_settings)
    assert isinstance(named.source, KubernetesSource)
    return named.source


def test_each_scheme_has_its_source() -> None:
    urls = ("file:/etc/b.yaml", "dns://vllm:8000", "srv://_http._tcp.vllm")
    named = named_sources([SourceConfig(url, backend=PLAIN) for url in urls], backend_settings)
    assert [each.name for each in named] == list(urls)
    assert [type(each.source) for each in named] == [FileSource, DnsSource, DnsSource]
    assert [each.source._port for each in named if isinstance(each.source, DnsSource)] == [8000, None]


def test_a_cluster_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    source = SourceConfig("kubernetes:///vllm:http", backend=PLAIN)
    with pytest.raises(ValueError, match="name api_server"):
        kubernetes(source)
    found = kubernetes(replace(source, api_server="http://127.0.0.1:8001"))
    assert found._cluster == Cluster("http://127.0.0.1:8001", None, None)
    assert found._selection == Selection("default", "kubernetes.io/service-name=vllm", "http")


def test_a_cluster_from_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    source = SourceConfig("kubernetes://prod/", selector="app=vllm", backend=PLAIN)
    assert kubernetes(source)._cluster == Cluster(
        "https://10.96.0.1:443", SERVICE_ACCOUNT / "token", SERVICE_ACCOUNT / "ca.crt"
    )
    assert kubernetes(source)._selection == Selection("prod", "app=vllm")
    elsewhere = kubernetes(replace(source, api_server="https://other"))
    assert elsewhere._cluster.token_file is None, "the token of this cluster is not shown to another server"


def test_what_holds_for_all_is_in_every_backend() -> None:
    (named,) = named_sources([SourceConfig("dns://vllm:8000", tls=True, backend=PLAIN)], backend_settings)
    assert isinstance(named.source, DnsSource)
    backend = named.source._template.at("10.0.0.1", 8000, options={"models": "m"})
    assert (backend.url, backend.api_key, backend.models) == ("https://10.0.0.1:8000", "k", ("m",))
    with pytest.raises(ValueError, match="max_pixels"):
        named.source._template.at("10.0.0.1", 8000, options={"max-pixels": "many"})
    with pytest.raises(ValueError, match="tls"):
        named_sources([SourceConfig("dns://v:1", backend=replace(PLAIN, tls_ca_file="ca.pem"))], backend_settings)


def test_files_are_read_by_the_rules_of_settings() -> None:
    (backend,) = file_backends(b"- http://a:8000", "f", PLAIN, backend_settings)
    assert (backend.url, backend.api_key) == ("http://a:8000", "k")
    with pytest.raises(ValueError, match=r"f: backends\.0\.surprise"):
        file_backends(b"- {url: http://a, surprise: 1}", "f", PLAIN, backend_settings)
    with pytest.raises(ValueError, match=r"^f: backends\.1\.tls_ca_file: means nothing for http"):
        file_backends(b"- http://a\n- {url: http://b, tls_ca_file: ca.pem}", "f", PLAIN, backend_settings)


def test_files_can_be_tried_before_a_start(tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    source = SourceConfig(f"file:{path}")
    with pytest.raises(ValueError, match="No such file"):
        read_source_files([source])
    path.write_text("- {url: http://a, surprise: 1}")
    with pytest.raises(ValueError, match="surprise"):
        read_source_files([source])
    path.write_text("- http://a")
    read_source_files([source, SourceConfig("dns://a:1")])
