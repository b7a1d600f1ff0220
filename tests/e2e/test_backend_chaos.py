"""Engines die, hang, freeze, talk rubbish and come back, all in real processes, while clients go on asking.

What must hold: no request is lost that a backend had certainly not taken; what may have run is one clean 502 (or 504)
and never runs twice; the first answer comes soon after the first backend's return; nothing is held in the end.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.e2e.processes import Engine, Gateway, until
from tests.ports import free_port
from tests.simulator.process import chat

pytestmark = pytest.mark.slow

REVIVAL_INTERVAL_S, PROBE_TIMEOUT_S = 0.1, 0.5
# From the moment at which a backend listens again: its next look, one that was under way and hung, and as much again
# eight times over for a busy machine. With the intervals that are the default it may take no longer either.
FIRST_SUCCESS_S = 10 * REVIVAL_INTERVAL_S + 2 * PROBE_TIMEOUT_S
ENVIRONMENT = {
    "VLMGW_UPSTREAM_PROBE_INTERVAL_S": "0.2",
    "VLMGW_UPSTREAM_REVIVAL_INTERVAL_S": str(REVIVAL_INTERVAL_S),
    "VLMGW_UPSTREAM_PROBE_TIMEOUT_S": str(PROBE_TIMEOUT_S),
    "VLMGW_UPSTREAM_RESPONSE_TIMEOUT_S": "4",
    "VLMGW_UPSTREAM_IDLE_TIMEOUT_S": "4",
    "VLMGW_UPSTREAM_GONE_GRACE_S": "0.3",
    "VLMGW_UPSTREAM_BREAKER_FAILURES": "1000",  # the fault of one test is not the next one's
}
# Statuses that tell of a request which may have run.
MAY_HAVE_RUN = {502, 504}


class Fleet:
    """A gateway before two engines on ports that stay theirs."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.ports = (free_port(), free_port())
        self.engines: dict[int, Engine] = {}
        for port in self.ports:
            self.begin(port)
        backends = [flag for port in self.ports for flag in ("--backend", f"http://127.0.0.1:{port}")]
        self.gateway = stack.enter_context(Gateway(*backends, "--pool", "1", environment=ENVIRONMENT))
        self.client = stack.enter_context(httpx.Client(trust_env=False, timeout=60))

    def begin(self, port: int, *flags: str) -> Engine:
        engine = self._stack.enter_context(Engine("--port", str(port), "--speed", "20", *flags))
        self.engines[port] = engine
        return engine

    def ask(self, **fields: object) -> httpx.Response:
        return self.client.post(f"{self.gateway.url}/v1/chat/completions", json=chat("Hello", max_tokens=4, **fields))

    def ask_many(self, count: int, **fields: object) -> list[httpx.Response]:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(lambda _: self.ask(**fields), range(count)))

    def up(self, port: int) -> bool:
        return self.gateway.metric("backend_up", backend=f"127.0.0.1:{port}") == 1

    def healed(self) -> None:
        """Both are back, and nothing is held any more."""
        for port in self.ports:
            if self.engines[port].process.poll() is not None:
                self.begin(port)
        until(lambda: all(self.up(port) for port in self.ports), "both backends up")
        until(lambda: self.gateway.metric("backend_inflight") == 0, "no request on any account")
        until(lambda: self.gateway.metric("requests_inflight") == 0, "no request in the gateway")
        until(lambda: self.gateway.metric("budget_reserved_tokens") == 0, "budgets that are whole again")
        for engine in self.engines.values():
            until(lambda engine=engine: engine.state()["in_flight"] == 0, "an engine at rest")  # type: ignore[misc]
        assert "Traceback" not in self.gateway.said


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(stack)


def test_kill_half_of_them_and_nothing_is_lost_that_was_not_taken(fleet: Fleet) -> None:
    first, second = fleet.ports
    fleet.engines[first].kill()
    assert {answer.status_code for answer in fleet.ask_many(12)} == {200}, "a dead port has taken nothing"
    until(lambda: not fleet.up(first), "the killed one seen as down")
    assert fleet.up(second)
    fleet.healed()


def test_all_of_them_and_back(fleet: Fleet) -> None:
    for port in fleet.ports:
        fleet.engines[port].kill()
    answers = fleet.ask_many(6)
    assert {answer.status_code for answer in answers} <= {502, 503}
    assert {answer.json()["error"]["code"] for answer in answers} <= {"backend_unreachable", "no_backend"}
    until(lambda: not any(fleet.up(port) for port in fleet.ports), "both seen as down")
    fleet.begin(fleet.ports[0])
    came_back_s = time.monotonic()
    until(lambda: fleet.ask().status_code == 200, "the first answer")
    assert time.monotonic() - came_back_s <= FIRST_SUCCESS_S
    fleet.healed()


@pytest.mark.parametrize("how", ["cut", "hang", "grace"])
def test_told_to_leave(fleet: Fleet, how: str) -> None:
    fleet.engines[fleet.ports[0]].kill()
    flags = ("--shutdown-timeout", "5") if how == "grace" else ("--sigterm", how)
    leaving = fleet.begin(fleet.ports[0], *flags)
    fleet.healed()
    for engine in fleet.engines.values():
        engine.forget()
        engine.fault("delay", times=4, delay_s=0.5)
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(fleet.ask, stream=True) for _ in range(4)]
        until(lambda: sum(len(each.requests()) for each in fleet.engines.values()) >= 4, "four that came")
        leaving.process.send_signal(signal.SIGTERM)
        ended = [each.result() for each in running]
    for answer in ended:
        told = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith('data: {"error"')]
        assert answer.status_code in {200, 500, *MAY_HAVE_RUN}, answer.text
        assert answer.status_code == 200 or len(told) <= 1
    assert {answer.status_code for answer in fleet.ask_many(6)} == {200}, "new ones go to the other"
    if leaving.process.poll() is None:
        leaving.kill()
    fleet.healed()


def test_frozen_and_thawed(fleet: Fleet) -> None:
    frozen = fleet.engines[fleet.ports[0]]
    frozen.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: not fleet.up(fleet.ports[0]), "the frozen one seen as down")
        assert {answer.status_code for answer in fleet.ask_many(6)} == {200}
    finally:
        frozen.process.send_signal(signal.SIGCONT)
    fleet.healed()


@pytest.mark.parametrize("kind", ["not_http", "half_head", "short_body", "broken_chunk", "reset_before_status"])
def test_rubbish_is_one_clean_502_and_runs_once(fleet: Fleet, kind: str) -> None:
    for engine in fleet.engines.values():
        engine.forget()
        engine.fault(kind)
    answer = fleet.ask()
    assert answer.status_code == 502, answer.text
    assert answer.json()["error"]["code"] == "backend_lost"
    assert sum(len(engine.requests()) for engine in fleet.engines.values()) == 1, "never sent twice"
    for engine in fleet.engines.values():
        engine.forget()
    fleet.healed()


def test_slow_is_no_failure(fleet: Fleet) -> None:
    for engine in fleet.engines.values():
        engine.fault("delay", delay_s=0.3)
    assert fleet.ask().status_code == 200
    for engine in fleet.engines.values():
        engine.forget()
    fleet.healed()
