"""Three gateways on one Redis that is killed, frozen and restarted empty under load: nobody's request notices.

The engine notes how many requests were in flight when each came, so what the budget allowed is seen where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.processes import PATIENT_PROBES, Engine, Gateway, until, write_policies
from tests.simulator.process import chat
from tests.state.redis_server import RedisServer, running

pytestmark = pytest.mark.slow

REPLICAS, LIMIT = 3, 6
CROWD, EACH = 6, 12  # threads per gateway, requests per gateway
QUICK = ("--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9", "--decode-tokens-per-s", "200")
SUMS = "vlmgw:1:{default}:sums"
# No machine is so busy that a healthy Redis answers later than this.
DEADLINE_S = 1.0


class Fleet:
    """Gateways, their engine and their Redis."""

    def __init__(self, gateways: list[Gateway], engine: Engine, redis: RedisServer, client: httpx.Client) -> None:
        self.gateways = gateways
        self.engine = engine
        self.redis = redis
        self._client = client
        self._threads = ThreadPoolExecutor(CROWD * len(gateways))

    def load(self) -> list[httpx.Response]:
        """Requests to all gateways, as many at one time as there are threads."""

        def post(gateway: Gateway) -> httpx.Response:
            body = chat("Are you there?", max_tokens=4)
            return self._client.post(f"{gateway.url}/v1/chat/completions", json=body)

        asked = [self._threads.submit(post, gateway) for _ in range(EACH) for gateway in self.gateways]
        return [each.result() for each in asked]

    def served(self) -> int:
        """Load that must be served whole; the most that were in flight in the engine."""
        self.engine.forget()
        statuses = [response.status_code for response in self.load()]
        assert statuses == [200] * REPLICAS * EACH
        return max(int(record["in_flight"]) for record in self.engine.requests())

    def in_flight(self) -> float:
        return sum(gateway.metric("backend_inflight") for gateway in self.gateways)

    def end(self) -> None:
        self._threads.shutdown()

    def until_degraded(self, *, wanted: bool) -> None:
        def told() -> bool:
            return all(gateway.metric("state_degraded") == wanted for gateway in self.gateways)

        until(told, f"state_degraded {int(wanted)} everywhere")

    def readiness(self) -> list[str]:
        texts = (self._client.get(f"{each.admin}/readyz?verbose") for each in self.gateways)
        return [f"{text.status_code} {text.text}" for text in texts]


@contextmanager
def fleet(folder: Path) -> Iterator[Fleet]:
    policies = write_policies(folder, default=f"requests_in_flight: {LIMIT}\nqueue_timeout_s: 60\n")
    with ExitStack() as stack:
        redis = stack.enter_context(running())
        engine = stack.enter_context(Engine(*QUICK))
        environment = {
            "VLMGW_REDIS_URL": redis.url,
            "VLMGW_REDIS_DEADLINE_S": str(DEADLINE_S),
            "VLMGW_REDIS_MIN_REPLICAS": str(REPLICAS),
            **PATIENT_PROBES,
        }
        words = ("--backend", engine.url, "--policies", str(policies), "--pool", "1")
        gateways = [stack.enter_context(Gateway(*words, environment=environment)) for _ in range(REPLICAS)]
        client = stack.enter_context(httpx.Client(trust_env=False, timeout=60))
        made = Fleet(gateways, engine, redis, client)
        stack.callback(made.end)
        yield made


def test_a_redis_that_goes_and_comes_back_under_load_costs_no_request(tmp_path: Path) -> None:
    with fleet(tmp_path) as all_of_it:
        redis = all_of_it.redis
        all_of_it.until_degraded(wanted=False)
        until(lambda: all(gateway.metric("state_replicas") == REPLICAS for gateway in all_of_it.gateways), "all known")

        with ThreadPoolExecutor(1) as beside:
            with all_of_it.engine.frozen():
                serving = beside.submit(all_of_it.load)
                until(lambda: all_of_it.in_flight() == LIMIT, "a budget that is used up")
            assert {response.status_code for response in serving.result()} == {200}
        assert all_of_it.served() <= LIMIT

        redis.kill()
        # What was admitted before the kill may run beside what the shares allow.
        assert all_of_it.served() <= 2 * LIMIT
        all_of_it.until_degraded(wanted=True)
        assert all("[!]shared_store away" in text and text.startswith("200 ") for text in all_of_it.readiness())
        assert all_of_it.served() <= LIMIT  # each a third

        with ThreadPoolExecutor(1) as beside:
            loading = beside.submit(all_of_it.load)
            redis.start()
            all_of_it.until_degraded(wanted=False)
            assert {response.status_code for response in loading.result()} == {200}
        assert all_of_it.served() <= LIMIT

        with ThreadPoolExecutor(1) as beside:
            loading = beside.submit(all_of_it.load)
            redis.freeze()
            all_of_it.until_degraded(wanted=True)
            assert {response.status_code for response in loading.result()} == {200}
        redis.thaw()
        all_of_it.until_degraded(wanted=False)
        assert all_of_it.served() <= LIMIT
        until(lambda: all("[+]shared_store 3 replicas" in text for text in all_of_it.readiness()), "all known again")

        # All has ended: nothing is held anywhere.
        until(lambda: redis.hash(SUMS) == {}, "an empty budget")
        for gateway in all_of_it.gateways:
            until(lambda told=gateway: told.metric("budget_reserved_tokens") == 0, "budgets that are whole again")  # type: ignore[misc]
            until(lambda told=gateway: len(_told(told, "store_back")) == 2, "the store twice back")  # type: ignore[misc]
            assert len(_told(gateway, "store_away")) == len(_told(gateway, "store_back")) == 2


def _told(gateway: Gateway, event: str) -> list[object]:
    """What was logged of the budgets' store. Hints come and go on a connection of their own."""
    return [line for line in gateway.lines(event) if line.get("store") != "hints"]
