"""What one request does to others: nothing. Image workers, backends, policies and the process itself come and go.

Order and events are asserted, never times: a worker is stopped by a signal and stays stopped until the test lets it go
on, a stream is as long as the test wants.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.processes import Engine, Gateway, until, write_policies
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import chat, image_part

pytestmark = pytest.mark.slow

CAPPED = ("--max-pixels", str(256 * 32 * 32))
# Nothing here depends on how long an engine takes, but on streams that do not end by themselves.
QUICK = ("--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9")


def photograph(number: int) -> dict[str, object]:
    """An image above the cap that no other number has."""
    return image_part(data_url(drawn.jpeg(800, 600 + 8 * number, (40 + number, 90, 200 - number))))


def post(gateway: Gateway, *parts: Any, **fields: Any) -> httpx.Response:
    body = chat(*parts, **{"max_tokens": 8, **fields})
    return httpx.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=60, trust_env=False)


def endless(gateway: Gateway, text: str) -> dict[str, Any]:
    """The arguments of a stream that does not end while a test looks."""
    body = chat(text, stream=True, max_tokens=8000, ignore_eos=True)
    return {"method": "POST", "url": f"{gateway.url}/v1/chat/completions", "json": body}


def reserved(gateway: Gateway) -> float:
    return gateway.metric("budget_reserved_tokens")


@contextmanager
def two_engines(*arguments: str) -> Iterator[tuple[Gateway, list[Engine]]]:
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine(*CAPPED, *QUICK)) for _ in range(2)]
        backends = [word for engine in engines for word in ("--backend", engine.url)]
        yield stack.enter_context(Gateway(*backends, *CAPPED, "--pool", "1", *arguments)), engines


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(*CAPPED, *QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(engine: Engine) -> Iterator[Gateway]:
    """One image worker, and deadlines that no stopped worker reaches."""
    patient = {"VLMGW_MEDIA_JOB_DEADLINE_S": "100"}
    with Gateway("--backend", engine.url, *CAPPED, "--pool", "1", environment=patient) as running:
        yield running


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as made:
        yield made


# --- image workers ---------------------------------------------------------------------------------------------------


def test_text_is_answered_while_every_image_worker_is_taken(gateway: Gateway, threads: ThreadPoolExecutor) -> None:
    (worker,) = gateway.workers()
    os.kill(worker, signal.SIGSTOP)
    try:
        waiting = [threads.submit(post, gateway, photograph(number), "big") for number in range(6)]
        until(lambda: gateway.metric("pool_busy") == 1 and gateway.metric("pool_queued") >= 5, "a saturated pool")
        texts = [post(gateway, f"text {number}") for number in range(10)]
        assert [answer.status_code for answer in texts] == [200] * 10
        assert not any(future.done() for future in waiting)
    finally:
        os.kill(worker, signal.SIGCONT)
    assert [future.result().status_code for future in waiting] == [200] * 6
    until(lambda: reserved(gateway) == 0, "a budget that is whole again")


def test_known_images_are_answered_while_every_image_worker_is_taken(
    gateway: Gateway, threads: ThreadPoolExecutor
) -> None:
    assert post(gateway, photograph(20), "first").status_code == 200
    (worker,) = gateway.workers()
    os.kill(worker, signal.SIGSTOP)
    try:
        waiting = threads.submit(post, gateway, photograph(21), "unknown")
        until(lambda: gateway.metric("pool_busy") == 1, "a taken worker")
        assert post(gateway, photograph(20), "again").status_code == 200
        assert not waiting.done()
    finally:
        os.kill(worker, signal.SIGCONT)
    assert waiting.result().status_code == 200


def test_a_worker_killed_at_work_costs_nobody_anything(gateway: Gateway, threads: ThreadPoolExecutor) -> None:
    (worker,) = gateway.workers()
    os.kill(worker, signal.SIGSTOP)
    waiting = [threads.submit(post, gateway, photograph(number), "big") for number in (30, 31)]
    until(lambda: gateway.metric("pool_busy") == 1, "a taken worker")
    os.kill(worker, signal.SIGKILL)
    assert [future.result().status_code for future in waiting] == [200, 200]
    assert gateway.metric("pool_restarts_total") >= 1
    until(lambda: gateway.metric("pool_workers") == 1, "a new worker")
    assert gateway.workers() != [worker]
    until(lambda: reserved(gateway) == 0, "a budget that is whole again")


# --- backends --------------------------------------------------------------------------------------------------------


def test_one_picture_goes_to_one_backend_and_a_dead_backend_loses_nothing_unsent() -> None:
    with two_engines() as (gateway, engines), ThreadPoolExecutor(16) as threads:
        until(lambda: gateway.metric("backend_up") == 2, "both backends")
        homes: list[str] = []
        while len(homes) < 8 or len(set(homes)) == 1:  # where each has its home is chance: it hangs on the ports
            homes.append(post(gateway, photograph(len(homes)), "what?").headers["x-vlmgw-backend"])
            assert len(homes) < 40, "no picture went to the other backend"
        again = [post(gateway, f"and now {number}?", photograph(number)) for number in range(len(homes))]
        assert [answer.headers["x-vlmgw-backend"] for answer in again] == homes
        assert set(homes) == {engine.name for engine in engines}

        # A request that a backend had taken when it died is one 502; the tokens it had reserved come back.
        doomed, survivor = engines
        number = homes.index(doomed.name)
        doomed.forget()
        survivor.forget()
        doomed.fault("hang_before_status")
        taken: Future[httpx.Response] = threads.submit(post, gateway, photograph(number), "last words")
        until(lambda: doomed.state()["in_flight"] == 1, "the request in the backend")
        doomed.kill()
        lost = taken.result()
        assert lost.status_code == 502
        assert lost.json()["error"]["code"] == "backend_lost"
        assert lost.headers["x-should-retry"] == "false"
        assert survivor.requests() == []

        # Whatever comes after it is served by the other, pictures of the dead one's included.
        after = list(threads.map(lambda n: post(gateway, photograph(n), "still there?"), range(8)))
        assert [answer.status_code for answer in after] == [200] * 8
        assert {answer.headers["x-vlmgw-backend"] for answer in after} == {survivor.name}
        until(lambda: gateway.metric("backend_up", backend=doomed.name) == 0, "a backend that is down")
        until(lambda: reserved(gateway) == 0, "a budget that is whole again")


# --- policies --------------------------------------------------------------------------------------------------------


def _reloaded(gateway: Gateway, good: int) -> None:
    until(lambda: gateway.metric("config_last_reload_successful") == good, "the reload's result")


def _answered(gateway: Gateway, count: float) -> None:
    until(lambda: gateway.metric("requests_total") > count, "requests after the reload")


def test_reloads_under_load_fail_nothing(engine: Engine, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    policies = write_policies(tmp_path / "policies", default="rules:\n  max_images: 7\n")
    with Gateway("--backend", engine.url, "--policies", str(policies), *CAPPED, "--pool", "1") as gateway:
        done = False

        def load(lane: int) -> list[int]:
            statuses: list[int] = []
            while not done:
                statuses.append(post(gateway, photograph(lane), f"turn {len(statuses)}").status_code)
            return statuses

        lanes = [threads.submit(load, lane) for lane in range(4)]
        try:
            for good, text in (
                (1, "rules: {max_images: 5}"),
                (0, "rules: {max_image: 5}"),
                (1, "rules: {max_images: 1}"),
            ):
                seen = gateway.metric("requests_total")
                write_policies(policies, default=text)
                gateway.signal(signal.SIGHUP)
                _reloaded(gateway, good)
                _answered(gateway, seen + 4)
        finally:
            done = True
        statuses = [status for lane in lanes for status in lane.result()]
        assert set(statuses) == {200}
        refused = post(gateway, photograph(0), photograph(1))
        assert refused.json()["error"]["code"] == "too_many_images"


# --- leaving ---------------------------------------------------------------------------------------------------------


def test_a_drain_lets_a_stream_finish(engine: Engine) -> None:
    with Gateway("--backend", engine.url, "--pool", "1") as gateway:
        body = chat("a long story", stream=True, max_tokens=120, ignore_eos=True)
        url = f"{gateway.url}/v1/chat/completions"
        with httpx.stream("POST", url, json=body, timeout=60, trust_env=False) as stream:
            lines = stream.iter_lines()
            next(lines)
            gateway.signal(signal.SIGTERM)
            gateway.line(lambda line: line.get("event") == "draining", "the drain's begin")
            events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert events[-1]["choices"][0]["finish_reason"] == "length"
        assert gateway.wait() == 0
        assert "Traceback" not in gateway.said


def test_a_second_signal_ends_at_once(engine: Engine) -> None:
    """A stream ends in the error that says so, or is cut where its reader is too slow to be told: never as if whole."""
    with Gateway("--backend", engine.url, "--pool", "1") as gateway:
        with httpx.stream(**endless(gateway, "no end"), timeout=60, trust_env=False) as stream:
            chunks = stream.iter_raw()
            next(chunks)
            gateway.signal(signal.SIGTERM)
            gateway.line(lambda line: line.get("event") == "draining", "the drain's begin")
            gateway.signal(signal.SIGTERM)
            told, is_cut = b"", False
            try:
                for chunk in chunks:
                    told += chunk
            except httpx.HTTPError:
                is_cut = True
            assert is_cut or b'"drain_ended"' in told.rpartition(b"data: ")[2]
        assert gateway.wait() == 1
        assert "Traceback" not in gateway.said
    until(lambda: engine.state()["in_flight"] == 0, "an engine without the request")


def test_nothing_is_left_of_a_killed_gateway(engine: Engine) -> None:
    with Gateway("--backend", engine.url, "--pool", "2") as gateway:
        assert len(gateway.workers()) == 2
        gateway.signal(signal.SIGKILL)
        gateway.process.wait()
        until(lambda: not gateway.workers(), "the end of every worker")
