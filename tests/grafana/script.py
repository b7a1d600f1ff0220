"""What is played for the dashboards: every way in which a request can end, twice, so that rates see each.

Decided here: the acts, and how many requests of each kind a ``measured`` act sends (``OUTCOMES``); the acts around it
make every series appear, and what has no exact number: retries, an ejection, an outage of Redis. Not decided here: what
is asked of it (``ops``).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx

from gateway.api.auth import hash_key
from tests.e2e.processes import Engine, Gateway, until, write_policies
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import chat, image_part
from tests.state.redis_server import RedisServer, running

ACME, TIGHT = "vgw-acme-0123456789", "vgw-tight-0123456789"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
QUICK = ("--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9", "--decode-tokens-per-s", "400")
EVERYDAY = ("--speed", "2")
# Half a minute of a stream at that pace, within its tenant's budget: its client ends it, however slow the machine is.
SLOW_TOKENS = 12_000
SECRET = "of-this-run-0123456789-0123456789"

# What one measured act sends, by the panel that must tell it: outcomes, codes, what is done to images, fetches.
OUTCOMES = {"ok": 10, "rejected": 6, "shed": 2, "backend_failed": 1, "client_gone": 1}
CODES = {
    "not_json": 1, "unauthenticated": 1, "too_many_images": 1, "image_undecodable": 1, "source_failed": 1,
    "source_blocked": 1, "rate_limit_exceeded": 2, "backend_lost": 1,
}  # fmt: skip
IMAGES = {"resized": 3, "reencoded": 1, "passed": 1}
FETCHES = {"ok": 1, "failed": 1, "blocked": 1}


class _Pictures(BaseHTTPRequestHandler):
    """One picture at ``/picture.png``."""

    def do_GET(self) -> None:  # the library's name
        body = drawn.png(448, 448) if self.path == "/picture.png" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the library's name
        """Nothing is said."""


@contextmanager
def pictures() -> Iterator[str]:
    """The address of a server of pictures."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pictures)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Stage:
    """The processes, and the acts that are played on them."""

    def __init__(self, stack: ExitStack, folder: Path, pace: tuple[str, ...] = QUICK) -> None:
        self.redis: RedisServer = stack.enter_context(running())
        self.origin = stack.enter_context(pictures())
        kinds = {"vllm-1": "vllm", "sglang-1": "sglang", "vllm-2": "vllm"}
        started = {name: stack.enter_context(Engine("--engine", kind, *pace)) for name, kind in kinds.items()}
        self.doomed = started["vllm-2"]
        self.engines = [started["vllm-1"], started["sglang-1"]]
        backends = [{"name": name, "url": engine.url} for name, engine in started.items()]
        config = folder / "gateway.yaml"
        config.write_text(json.dumps({"backends": backends}))
        tenant = "queue_timeout_s: 0\nrules: {max_pixels: 512x512, max_images: 4}\nkv_tokens_in_flight: 20000\n"
        self.policies = write_policies(
            folder / "policies",
            acme=f"tenant: acme\nkeys: ['{hash_key(ACME)}']\n{tenant}",
            tight=f"tenant: tight\nkeys: ['{hash_key(TIGHT)}']\nqueue_timeout_s: 0\nrates: {{requests: 1/h}}\n",
        )
        environment = {
            "VLMGW_REDIS_URL": self.redis.url,
            # A busy machine is no dead Redis, backend, origin or worker: what fails here is meant to.
            "VLMGW_REDIS_DEADLINE_S": "20",
            "VLMGW_FETCH_TOTAL_TIMEOUT_S": "60",
            "VLMGW_MEDIA_JOB_DEADLINE_S": "60",
            "VLMGW_UPSTREAM_CONNECT_TIMEOUT_S": "60",
            "VLMGW_UPSTREAM_PROBE_TIMEOUT_S": "60",
            "VLMGW_UPSTREAM_EJECT_LATENCY_FACTOR": "1000000",
            "VLMGW_IDENTITY_SECRET": SECRET,
            "VLMGW_MEDIA_SHARED_CACHE_BYTES": str(8 << 20),
            "VLMGW_FETCH_PUBLIC_NETWORKS": "127.0.0.0/8",
            # Two backends meet that many requests in some of these intervals on any machine, and no breaker is first.
            "VLMGW_UPSTREAM_EJECT_INTERVAL_S": "3",
            "VLMGW_UPSTREAM_EJECT_VOLUME": "3",
            "VLMGW_UPSTREAM_EJECT_S": "1",
            "VLMGW_UPSTREAM_BREAKER_FAILURES": "1000000",
            "VLMGW_SERVER_DRAIN_TIMEOUT_S": "120",
            # A backend that dies is found by a request, not by a probe.
            "VLMGW_UPSTREAM_PROBE_INTERVAL_S": "3600",
        }
        words = ("--config", str(config), "--policies", str(self.policies), "--pool", "1")
        self.gateway = stack.enter_context(Gateway(*words, environment=environment))
        self.client = stack.enter_context(httpx.Client(base_url=self.gateway.url, trust_env=False, timeout=60))
        self.tokens_sent = 0
        self._number = 0

    def targets(self) -> dict[str, list[str]]:
        """What Prometheus scrapes."""
        return {
            "vlm-gateway": [urlsplit(self.gateway.admin).netloc],
            "engines": [urlsplit(engine.url).netloc for engine in (*self.engines, self.doomed)],
        }

    def post(self, body: dict[str, Any] | bytes, *, key: str = ACME, expect: int = 200) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01",
        }
        answer = self.client.post("/v1/chat/completions", content=content, headers=headers)
        assert answer.status_code == expect, f"{answer.status_code}: {answer.text[:300]}"
        return answer

    def text(self, **fields: Any) -> dict[str, Any]:
        return chat("What do you see?", max_tokens=4, **fields)

    def picture(self, width: int, height: int) -> dict[str, object]:
        """One that was never there before."""
        self._number += 1
        colour = (self._number % 256, self._number // 256 % 256, width % 256)
        return image_part(data_url(drawn.jpeg(width, height, colour)))

    def living(self) -> list[Engine]:
        """Engines that were not killed."""
        return [engine for engine in (*self.engines, self.doomed) if engine.process.poll() is None]

    def measured(self) -> None:
        """Exactly ``OUTCOMES``, counted by the gateway before this ends."""
        before = self.gateway.metric("requests_total")
        for _ in range(3):
            self.post(self.text())
        for _ in range(2):
            self.post(self.text(stream=True, stream_options={"include_usage": True}))
        large = self.picture(1600, 1200)
        for picture in (large, large, self.picture(1800, 900), self.picture(512, 512)):
            self.post(chat(picture, "What?", max_tokens=4))
        self.post(chat(image_part(f"{self.origin}/picture.png"), "What?", max_tokens=4))
        self.post(b"{", expect=400)
        self.post(self.text(), key="vgw-nobody-0123456789", expect=401)
        self.post(chat(*[self.picture(64, 64)] * 5, max_tokens=4), expect=400)
        self.post(chat(image_part(data_url(b"\xff\xd8\xff\xe0 no picture")), max_tokens=4), expect=400)
        self.post(chat(image_part(f"{self.origin}/none.png"), max_tokens=4), expect=424)
        self.post(chat(image_part("http://10.0.0.1/x.png"), max_tokens=4), expect=403)
        for _ in range(2):
            self.post(self.text(), key=TIGHT, expect=429)
        for engine in self.living():
            engine.fault("reset_before_status")
        self.post(self.text(), expect=502)
        for engine in self.living():
            engine.forget()
        self.leave()
        played = sum(OUTCOMES.values())
        until(lambda: self.gateway.metric("requests_total") - before == played, f"{played} requests, all counted")

    def leave(self) -> None:
        """A client that goes in the middle of a stream."""
        before = self.gateway.metric("requests_total", outcome="client_gone")
        address = urlsplit(self.gateway.url)
        body = json.dumps(self.text() | {"max_tokens": SLOW_TOKENS, "stream": True, "ignore_eos": True}).encode()
        with socket.create_connection((address.hostname, address.port or 0), timeout=30) as client:
            client.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                + f"Authorization: Bearer {ACME}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        until(lambda: self.gateway.metric("requests_total", outcome="client_gone") > before, "a client that is gone")

    def reload(self) -> None:
        """One that fails and one that does not."""
        broken = self.policies / "broken.yaml"
        broken.write_text("tenant: [\n")
        assert httpx.post(f"{self.gateway.admin}/-/reload", trust_env=False, timeout=30).status_code == 422
        broken.unlink()
        assert httpx.post(f"{self.gateway.admin}/-/reload", trust_env=False, timeout=30).status_code == 200

    def crash(self) -> None:
        """An image worker is killed; another takes its place."""
        (worker,) = self.gateway.workers()
        os.kill(worker, signal.SIGKILL)
        until(lambda: self.gateway.workers() not in ([], [worker]), "another worker")

    def lose_redis(self) -> None:
        """The store goes and comes back."""
        self.redis.kill()
        self.post(self.text())
        until(lambda: self.gateway.metric("state_degraded") == 1, "a store that is away")
        self.redis.start()
        until(lambda: self.gateway.metric("state_degraded") == 0, "a store that is back")

    def eject(self) -> None:
        """A backend loses most of what it is given, and is left alone for a while."""
        bad = self.engines[0]
        bad.fault("reset_before_status", times=1_000_000)

        def ejected() -> bool:
            for _ in range(4):
                self.client.post("/v1/chat/completions", json=self.text(), headers={"Authorization": f"Bearer {ACME}"})
            return self.gateway.metric("backend_ejections_total") > 0

        until(ejected, "an ejection")
        bad.forget()
        until(lambda: self.gateway.metric("backend_up") == len(self.living()), "all backends up again")

    def lose_engine(self) -> None:
        """A third engine dies; the request that finds out goes elsewhere."""
        self.doomed.kill()

        def retried() -> bool:
            self.post(self.text())
            return self.gateway.metric("upstream_retries_total") > 0

        until(retried, "a request that was sent again")

    def drift(self) -> None:
        """An engine counts an image's tokens otherwise than expected."""

        def counted() -> bool:
            for engine in self.engines:
                engine.fault("usage_drift", tokens=3)
            self.post(chat(self.picture(300, 300), "What?", max_tokens=4))
            return self.gateway.metric("image_token_drift_total") > 0

        until(counted, "an image counted otherwise")
        for engine in self.engines:
            engine.forget()

    def flow(self, seconds: float) -> None:
        """Everyday traffic, for pictures: text, streams and images of a few people at once."""
        ends_s = time.monotonic() + seconds

        def person(number: int) -> None:
            random = Random(number)
            mine = [self.picture(1200, 900), self.picture(900, 700)]
            while time.monotonic() < ends_s:
                body = chat("Tell me more.", max_tokens=random.randint(4, 60), stream=random.random() < 0.5)
                if random.random() < 0.5:
                    fresh = self.picture(random.randint(400, 1200), random.randint(400, 900))
                    picture = fresh if random.random() < 0.4 else random.choice(mine)
                    body = chat(picture, "What?", max_tokens=random.randint(4, 60))
                content = b"{" if random.random() < 0.02 else json.dumps(body).encode()
                self.client.post("/v1/chat/completions", content=content, headers=headers)

        headers = {"Authorization": f"Bearer {ACME}", "Content-Type": "application/json"}
        with ThreadPoolExecutor(4) as people:
            for done in [people.submit(person, number) for number in range(4)]:
                done.result()

    def drain(self, seen: Callable[[], bool]) -> None:
        """It is told to leave while a stream flows, which ends well; until that was ``seen`` no engine goes on."""
        body = self.text() | {"max_tokens": 1000, "stream": True, "ignore_eos": True}
        headers = {"Authorization": f"Bearer {ACME}"}
        with self.client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
            pieces = answer.iter_bytes()
            next(pieces)
            for engine in self.living():
                engine.process.send_signal(signal.SIGSTOP)
            try:
                self.gateway.signal(signal.SIGTERM)
                until(seen, "a drain that is seen")
            finally:
                for engine in self.living():
                    engine.process.send_signal(signal.SIGCONT)
            assert b"".join(pieces).endswith(b"data: [DONE]\n\n")
        assert self.gateway.wait() == 0
