"""Several processes that are one gateway: counted together, reloaded together, replaced alone, gone together."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from gateway.cli.supervisor import Supervisor
from gateway.config.sources import load_settings
from gateway.telemetry.log import JsonLog
from tests.cli.command import NOBODY
from tests.e2e.processes import Gateway, until

pytestmark = pytest.mark.slow

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def children(pid: int) -> list[int]:
    """The processes that serve."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"\nPPid:\t{pid}\n" in (folder / "status").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return sorted(found)


class Recording:
    """Of a process only what a signal needs."""

    returncode = None

    def __init__(self) -> None:
        self.heard: list[int] = []

    def send_signal(self, number: int) -> None:
        self.heard.append(number)


async def test_a_hangup_is_for_those_that_serve_and_an_end_for_all() -> None:
    log = JsonLog("error", access=False)
    flags: dict[str, object] = {"server.processes": 2}
    supervisor = Supervisor(load_settings(environment={}, flags=flags), flags, None, log)
    processes = [Recording(), Recording()]
    for sibling, process in zip(supervisor.siblings, processes, strict=True):
        sibling.process = cast("asyncio.subprocess.Process", process)
    supervisor.siblings[0].admin_port = 9465
    supervisor.pass_on(signal.SIGHUP)
    supervisor.pass_on(signal.SIGTERM)
    assert supervisor.is_leaving
    assert [process.heard for process in processes] == [[signal.SIGHUP, signal.SIGTERM], [signal.SIGTERM]]
    log.close()


def start() -> Gateway:
    return Gateway("--backend", NOBODY, "--pool", "2", "--processes", "2")


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with start() as running:
        started = running.line(lambda line: line.get("event") == "processes_started", "all processes")
        running.admin = f"http://127.0.0.1:{started['admin_port']}"
        assert len(set(started["admin_ports"])) == 2
        yield running


def ask(gateway: Gateway, times: int) -> None:
    for _ in range(times):  # each on a connection of its own: the kernel spreads those
        httpx.post(f"{gateway.url}/v1/chat/completions", json=BODY, trust_env=False, timeout=30)


def counted(gateway: Gateway, times: int) -> None:
    """An exchange is recorded when it has ended, which its client may see a moment earlier."""
    until(lambda: gateway.metric("requests_total") >= times, f"{times} requests counted")
    assert gateway.metric("requests_total") == times


def page(gateway: Gateway) -> str:
    return httpx.get(f"{gateway.admin}/metrics", trust_env=False, timeout=30).text


def test_one_truth_for_all_and_one_lost_costs_nothing_that_was_counted(gateway: Gateway) -> None:
    until(lambda: f"on {gateway.url}, admin on port {gateway.admin.rpartition(':')[2]}." in gateway.said, "where it is")
    assert gateway.lines("budgets_split")[0]["processes"] == 2
    ask(gateway, 16)
    counted(gateway, 16)
    until(lambda: [gateway.metric("pool_workers", process=number) for number in "12"] == [1, 1], "a worker each")
    lost = children(gateway.pid)[0]
    os.kill(lost, signal.SIGKILL)
    gateway.line(lambda line: line.get("event") == "process_lost", "the loss")
    counted(gateway, 16)
    gateway.line(lambda line: line.get("event") == "process_back", "a new one")
    ask(gateway, 8)
    counted(gateway, 24)
    assert {f'process="{number}"' in page(gateway) for number in (1, 2)} == {True}
    told = httpx.get(f"{gateway.admin}/readyz?verbose", trust_env=False, timeout=30)
    assert (told.status_code, told.text.count("[+]process ")) == (200, 2)
    assert httpx.get(f"{gateway.admin}/livez", trust_env=False, timeout=30).status_code == 200
    reload_all(gateway)
    leave_at_once(gateway)


def reload_all(gateway: Gateway) -> None:
    told = httpx.post(f"{gateway.admin}/-/reload", trust_env=False, timeout=30)
    assert told.json() == {"reloaded": True, "problems": []}
    until(lambda: len(gateway.lines("reload")) == 2, "two reloads")
    gateway.signal(signal.SIGHUP)
    until(lambda: len(gateway.lines("reload")) == 4, "two more")
    explained = httpx.post(f"{gateway.admin}/-/explain", json=BODY, trust_env=False, timeout=30)
    assert explained.status_code == 200
    assert "policy" in explained.text


def leave_at_once(gateway: Gateway) -> None:
    """The first request to leave comes by the admin port and waits for who is served, the second by a signal."""
    were, url = children(gateway.pid), httpx.URL(gateway.url)
    with socket.create_connection((url.host, url.port or 80)) as client:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        client.sendall(head)
        assert client.recv(100).startswith(b"HTTP/1.1 100")
        assert httpx.post(f"{gateway.admin}/-/drain", trust_env=False, timeout=30).status_code == 202
        until(lambda: len(gateway.lines("draining")) == 2, "both drain")
        gateway.signal(signal.SIGTERM)
        assert gateway.wait() == 1
    assert not [pid for pid in were if Path(f"/proc/{pid}").exists()]
    assert len(gateway.lines("stopped")) == 2
    assert "Traceback" not in gateway.said


def test_none_outlives_its_supervisor(gateway: Gateway) -> None:
    were = [*children(gateway.pid), *(worker for pid in children(gateway.pid) for worker in children(pid))]
    assert len(were) == 4
    os.kill(gateway.pid, signal.SIGKILL)
    until(lambda: not [pid for pid in were if Path(f"/proc/{pid}").exists()], "the end of all")
