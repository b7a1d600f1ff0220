"""A process that runs out of something goes on when there is enough of it again, and says so in one line."""

from __future__ import annotations

import os
import resource
import signal
import socket
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.processes import Engine, Gateway, until
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import chat, image_part

pytestmark = pytest.mark.slow


def test_without_descriptors_nothing_is_lost_for_good() -> None:
    with Engine() as engine, Gateway("--backend", engine.url, "--pool", "1") as gateway, ExitStack() as clients:
        limits = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
        assert limits[0] == limits[1], "as many as the system grants"
        taken = max(int(each.name) for each in Path(f"/proc/{gateway.pid}/fd").iterdir())
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (taken + 1, limits[1]))
        address = urlsplit(gateway.url)
        for _ in range(40):
            client = clients.enter_context(socket.create_connection((address.hostname, address.port or 0), timeout=30))
            client.sendall(b"GET /health HTTP/1.1\r\nHost: gateway\r\n\r\n")
        assert gateway.line(lambda line: line.get("event") == "out_of_resources", "the lack")["level"] == "error"
        (worker,) = gateway.workers()
        os.kill(worker, signal.SIGKILL)
        until(lambda: gateway.workers() == [], "the loss of the only worker")
        clients.close()
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, limits)
        until(gateway.workers, "a new worker")
        body = chat(image_part(data_url(drawn.jpeg(300, 300, (40, 90, 200)))), max_tokens=2)
        answer = httpx.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=60, trust_env=False)
        assert answer.status_code == 200, answer.text
        said_s = [line["time"] for line in gateway.lines("out_of_resources")]
        assert said_s, "it is said"
        assert all(later - earlier > 9 for earlier, later in pairwise(said_s)), "at most one line in ten seconds"
        assert "Traceback" not in gateway.said
