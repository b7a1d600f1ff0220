"""Settings of engines and of the places where they are found, as gateway.yaml and the environment give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.backends import SourceConfig
from gateway.config.documents import SettingsProblems
from gateway.config.sources import load_settings, masked


def test_sources_in_a_file_and_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(
        "sources:\n- file:backends.yaml\n- url: dns://vllm:8000\n  refresh_s: 500ms\n"
        "  backend: {engine: vllm, api_key: secret, models: [m]}\n"
    )
    settings = load_settings(path, environment={})
    file, dns = settings.sources
    assert file.url == f"file:{tmp_path}/backends.yaml"
    assert (dns.refresh_s, dns.backend.engine, dns.backend.models) == (0.5, "vllm", ("m",))
    assert masked(settings)["sources"][1]["backend"]["api_key"] == "***"


def test_sources_in_the_environment() -> None:
    settings = load_settings(environment={"VLMGW_SOURCES": "dns://vllm:8000, file:/etc/b.yaml"})
    assert [source.url for source in settings.sources] == ["dns://vllm:8000", "file:/etc/b.yaml"]


def test_wrong_ones_are_told() -> None:
    with pytest.raises(SettingsProblems, match=r"sources\.0\.url: must be dns://HOST:PORT"):
        load_settings(environment={"VLMGW_SOURCES": "dns://vllm"})


def test_an_absolute_file_stays_where_it_is() -> None:
    assert SourceConfig("file:/etc/b.yaml").below(Path("/home")).url == "file:/etc/b.yaml"
    assert SourceConfig("dns://a:1").below(Path("/home")).url == "dns://a:1"
