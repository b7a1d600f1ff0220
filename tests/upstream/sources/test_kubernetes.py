"""EndpointSlices as a source, against an API server of real HTTP: list, watch, 410, reconnects, rotated tokens."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from gateway.upstream.sources import kubernetes
from gateway.upstream.sources.kubernetes import Cluster, KubernetesSource, Selection
from tests.certificates import self_signed
from tests.upstream.scripted import until
from tests.upstream.sources.kubernetes_api import KubernetesApi, endpoint, endpoint_slice
from tests.upstream.sources.watching import heard, template

SELECTION = Selection("prod", "kubernetes.io/service-name=vllm", "http")


def source(api: KubernetesApi, token_file: Path | None = None) -> KubernetesSource:
    return KubernetesSource(Cluster(api.url, token_file, None), SELECTION, template(), 0.01)


async def test_slices_are_listed_and_their_changes_followed() -> None:
    async with KubernetesApi() as api:
        api.put(endpoint_slice("a", endpoint("pod-1", "10.0.0.1", ready=True)))
        async with heard(source(api)) as ears:
            await until(lambda: bool(api.watches))
            assert (ears.names, ears.urls) == (["pod-1"], ["http://10.0.0.1:8000"])
            assert api.watches[0]["resourceVersion"] == "101"
            assert api.watches[0]["labelSelector"] == SELECTION.selector
            api.put(endpoint_slice("b", endpoint("pod-2", "10.0.0.2")))
            await until(lambda: ears.names == ["pod-1", "pod-2"])
            api.put(endpoint_slice("b", endpoint("pod-2", "10.0.0.2", ready=False, serving=True, terminating=True)))
            await until(lambda: ears.names == ["pod-1"])
            api.delete("a")
            await until(lambda: ears.names == [])
            assert (api.lists, ears.failures) == (1, [])


async def test_long_lists_come_in_pages() -> None:
    async with KubernetesApi(page=2) as api:
        for number in range(5):
            api.put(endpoint_slice(f"s{number}", endpoint(f"pod-{number}", f"10.0.0.{number}")))
        async with heard(source(api)) as ears:
            await until(lambda: len(ears.names) == 5)
            assert api.lists == 3


async def test_a_watch_that_ends_goes_on_from_the_last_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "_SHORT_WATCH_S", 0.001)
    async with KubernetesApi() as api, heard(source(api)) as ears:
        await until(lambda: len(api.watches) == 1 and bool(api._open))
        api.bookmark()
        api.end_watches()
        await until(lambda: len(api.watches) == 2)
        assert (api.watches[1]["resourceVersion"], api.lists, ears.failures) == ("101", 1, [])


async def test_gone_means_to_list_again() -> None:
    async with KubernetesApi() as api, heard(source(api)) as ears:
        await until(lambda: len(api._open) == 1)
        api.slices["a"] = endpoint_slice("a", endpoint("pod-1", "10.0.0.1"))
        api.tell("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})
        await until(lambda: ears.names == ["pod-1"])
        assert (api.lists, ears.failures) == (2, [])
        await until(lambda: len(api._open) == 1)
        api.refuse_watches_with = 410
        api.end_watches()
        await until(lambda: api.lists >= 3)
        api.refuse_watches_with = None
        assert ears.failures == []


async def test_errors_are_told_and_survived() -> None:
    async with KubernetesApi() as api:
        api.put(endpoint_slice("a", endpoint("pod-1", "10.0.0.1")))
        async with heard(source(api)) as ears:
            await until(lambda: len(api._open) == 1)
            api.tell("ERROR", {"code": 500, "message": "etcd leader changed"})
            await until(lambda: ears.failures == ["watch: etcd leader changed"])
            await until(lambda: api.lists == 2 and len(api._open) == 1)
            api.put(endpoint_slice("a", endpoint("pod-1", "10.0.0.1"), ports=[]))
            await until(lambda: len(ears.failures) > 1)
            assert "no port 'http'" in ears.failures[1]
            assert ears.names == ["pod-1"]


async def test_a_server_that_is_away_is_asked_until_it_is_back() -> None:
    async with KubernetesApi() as gone:
        away = gone.url
    source_ = KubernetesSource(Cluster(away, None, None), SELECTION, template(), 0.01)
    async with heard(source_) as ears:
        await until(lambda: len(ears.failures) > 1)
        assert ears.answers == []


async def test_a_rotated_token_is_read_anew(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    async with KubernetesApi(tokens={"old"}) as api, heard(source(api, token)) as ears:
        await until(lambda: len(api._open) == 1)
        api.tokens = {"new"}
        api.tell("ERROR", {"code": 410})
        await until(lambda: bool(ears.failures))
        assert "401: Unauthorized" in ears.failures[0]
        token.write_text("new\n")
        await until(lambda: len(api._open) == 1)
        assert {"Bearer old", "Bearer new"} <= set(api.shown)


async def test_the_api_is_known_by_the_authorities_in_the_file(tmp_path: Path) -> None:
    papers, strangers = self_signed(tmp_path, "api"), self_signed(tmp_path, "stranger")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(papers.certificate, papers.key)
    async with KubernetesApi(context=context) as api:
        api.put(endpoint_slice("a", endpoint("pod-1", "10.0.0.1")))
        ca = tmp_path / "ca.crt"
        ca.write_bytes(strangers.certificate.read_bytes())
        async with heard(KubernetesSource(Cluster(api.url, None, ca), SELECTION, template(), 0.01)) as ears:
            await until(lambda: bool(ears.failures))
            assert "CERTIFICATE_VERIFY_FAILED" in ears.failures[0]
            ca.write_bytes(papers.certificate.read_bytes())
            await until(lambda: ears.names == ["pod-1"])


async def test_options_beside_a_service_hold_for_its_endpoints() -> None:
    labelled = endpoint_slice("a", endpoint("pod-1", "10.0.0.1"))
    labelled["metadata"]["annotations"] = {"vlm-gateway/models": "qwen"}
    async with KubernetesApi() as api:
        api.put(labelled)
        async with heard(source(api)) as ears:
            await until(lambda: bool(ears.answers))
            assert ears.answers[-1][0].models == ("qwen",)


def test_a_pod_knows_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert Cluster.around() is None
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    around = Cluster.around()
    assert around is not None
    assert around.api_server == "https://[fd00::1]:6443"
    assert around.token_file == kubernetes.SERVICE_ACCOUNT / "token"


@pytest.mark.parametrize("written", ["a-secret\nin two lines", "ein-s\u00e4cret", ""])
async def test_a_token_that_is_none_is_told_without_being_quoted(tmp_path: Path, written: str) -> None:
    token = tmp_path / "token"
    token.write_text(written, encoding="utf-8")
    async with KubernetesApi() as api, heard(source(api, token)) as ears:
        await until(lambda: bool(ears.failures))
        assert set(ears.failures) == {"token_file: does not hold one token"}
