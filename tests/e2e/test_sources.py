"""Backends that come and go by file, DNS and Kubernetes under traffic: no request is lost, and each takes its share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from tests.e2e.processes import Gateway, until
from tests.simulator.process import SimulatorProcess, chat
from tests.upstream.sources.dns_server import DnsServer
from tests.upstream.sources.kubernetes_api import KubernetesApi, endpoint, endpoint_slice

HOST = "vllm.test"


class World:
    """Who says where engines are; lives in a loop of its own, in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._live(),), daemon=True)

    async def _live(self) -> None:
        async with DnsServer({HOST: {"A": ("127.0.0.1",)}}) as self.dns, KubernetesApi() as self.kubernetes:
            self._ready.set()
            await self._done.wait()

    def __enter__(self) -> World:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(30)
        self._loop.close()

    def pods(self, **urls: str) -> None:
        """The cluster has exactly these pods, all ready."""
        slices = [
            endpoint_slice(name, endpoint(name, "127.0.0.1", ready=True), port=urlsplit(url).port or 0)
            for name, url in urls.items()
        ]

        def change() -> None:
            for name in self.kubernetes.slices.keys() - urls.keys():
                self.kubernetes.delete(name)
            for each in slices:
                self.kubernetes.put(each)

        self._loop.call_soon_threadsafe(change)

    def resolve(self, *addresses: str) -> None:
        self.dns.records = {HOST: {"A": addresses}}


class Traffic:
    """Clients that ask without a pause, half of them for streams, and remember every answer's backend and fault."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.served: list[str] = []
        self.faults: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(bool(number % 2),)) for number in range(4)]

    def _ask(self, stream: bool) -> None:
        with httpx.Client(base_url=self._url, trust_env=False, timeout=30) as client:
            while not self._stop.is_set():
                answer = client.post("/v1/chat/completions", json=chat("Hello.", max_tokens=4, stream=stream))
                is_whole = answer.status_code == 200 and (not stream or answer.text.rstrip().endswith("[DONE]"))
                if is_whole and '"error"' not in answer.text:
                    self.served.append(answer.headers["x-vlmgw-backend"])
                else:
                    self.faults.append(f"{answer.status_code}: {answer.text[-300:]}")

    def since(self, position: int) -> set[str]:
        return set(self.served[position:])

    @contextmanager
    def running(self) -> Iterator[Traffic]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(30)


@pytest.mark.slow
def test_backends_come_and_go_under_traffic(tmp_path: Path) -> None:
    file, config = tmp_path / "backends.yaml", tmp_path / "gateway.yaml"
    with World() as world, SimulatorProcess() as one, SimulatorProcess() as two, SimulatorProcess() as three:
        file.write_text(yaml.safe_dump([{"url": one.url, "name": "one"}]))
        port = urlsplit(two.url).port
        sources = [
            {"url": "file:backends.yaml", "refresh_s": 0.05},
            {"url": f"dns://{HOST}:{port}", "name": "dns", "refresh_s": 0.05, "nameservers": [world.dns.address]},
            {
                "url": "kubernetes://prod/vllm:http", "name": "k8s", "api_server": world.kubernetes.url,
                "refresh_s": 0.05, "hold_s": 0.05, "backend": {"engine": "vllm"},
            },
        ]  # fmt: skip
        config.write_text(yaml.safe_dump({"sources": sources}))
        with Gateway("--config", str(config)) as gateway, Traffic(gateway.url).running() as traffic:
            dns = f"127.0.0.1:{port}"
            until(lambda: traffic.since(0) == {"one", dns}, "requests on both")

            world.pods(three=three.url)
            until(lambda: "three" in traffic.since(0), "a request on the pod")

            file.write_text("- {url: http://127.0.0.1:1, surprise: 1}")
            gateway.line(lambda line: line.get("event") == "source_failed", "the bad file")
            position = len(traffic.served)
            until(lambda: "one" in traffic.since(position), "a request on the last good file's backend")

            file.write_text(yaml.safe_dump([{"url": three.url, "name": "other"}]))
            until(lambda: "other" in traffic.since(position), "a request on the file's new backend")
            until(lambda: gateway.metric("backend_up", backend="one") == 0, "one's departure")

            world.resolve()
            world.pods()
            until(lambda: any("three" in line["left"] for line in gateway.lines("backends_changed")), "the pod's leave")
            position = len(traffic.served) + 20  # what had begun before has ended by then
            until(lambda: len(traffic.served) > position + 20, "more traffic")
            until(lambda: {"other", dns} <= traffic.since(position), "an empty DNS answer is not believed at once")
            assert traffic.since(position) == {"other", dns}

            world.pods(three=three.url)
            position = len(traffic.served)
            until(lambda: "three" in traffic.since(position), "the pod's return")
            until(lambda: gateway.metric("backend_source_ok") == 3, "three sources that answer")
            assert gateway.metric("upstream_requests_total", backend="one") == 0
        assert traffic.faults == []
        assert len(traffic.served) > 100
