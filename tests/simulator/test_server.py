"""The process as a whole: records, early faults, disconnects, idle connections, the ways it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from gateway.simulator.server import start
from gateway.simulator.settings import SimulatorSettings
from tests.simulator import drawn
from tests.simulator.conftest import Starter
from tests.simulator.process import SimulatorProcess, chat, events, image_part, parsed_events

LONG: dict[str, object] = {"stream": True, "ignore_eos": True, "max_tokens": 20_000}


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.005)


def test_a_request_is_recorded_with_what_the_engine_saw(vllm_http: httpx.Client) -> None:
    part = image_part(drawn.data_url(drawn.turned_jpeg(80, 40, 6)), uuid="u-9")
    vllm_http.post("/v1/chat/completions", json=chat(part, "Hi"), headers={"X-Test": "yes"})
    (record,) = vllm_http.get("/sim/requests").json()["requests"]
    assert (record["path"], record["status"], record["outcome"]) == ("/v1/chat/completions", 200, "completed")
    assert ["x-test", "yes"] in [[name.lower(), value] for name, value in record["headers"]]
    (image,) = record["images"]
    assert (image["stored_width"], image["stored_height"], image["width"], image["height"]) == (80, 40, 40, 80)
    assert (image["uuid"], image["pointer"]) == ("u-9", "messages.0.content.0")
    assert record["image_tokens"] == image["tokens"]
    vllm_http.delete("/sim/requests")
    assert vllm_http.get("/sim/requests").json() == {"requests": [], "admin_calls": []}


@pytest.mark.slow
def test_records_are_there_only_when_switched_on(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    with SimulatorProcess("--speed", "0", "--record", str(path)) as process:
        assert httpx.get(f"{process.url}/sim/requests").status_code == 404
        httpx.post(f"{process.url}/v1/chat/completions", json=chat("Hi"), timeout=30)
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["outcome"] == "completed"


def test_the_next_requests_can_be_refused(vllm_http: httpx.Client) -> None:
    vllm_http.post("/sim/faults", json={"faults": [{"kind": "status", "times": 2, "status": 503}]})
    assert vllm_http.post("/tokenize", json={"prompt": "x"}).status_code == 200
    statuses = [vllm_http.post("/v1/chat/completions", json=chat("Hi")).status_code for _ in range(3)]
    assert statuses == [503, 503, 200]
    assert vllm_http.post("/sim/faults", json={"faults": [{"kind": "x"}]}).status_code == 400


def test_a_connection_can_be_reset_or_stay_silent_before_the_status(vllm_http: httpx.Client) -> None:
    vllm_http.post("/sim/faults", json={"faults": [{"kind": "reset_before_status"}, {"kind": "hang_before_status"}]})
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        vllm_http.post("/v1/chat/completions", json=chat("Hi"))
    with pytest.raises(httpx.ReadTimeout):
        vllm_http.post("/v1/chat/completions", json=chat("Hi"), timeout=0.3)
    vllm_http.post("/sim/faults", json={"faults": [{"kind": "delay", "delay_s": 0.01}]})
    assert vllm_http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


async def test_the_request_id_is_echoed_when_switched_on(simulator: Starter) -> None:
    client, _ = await simulator(request_id_headers=True)
    answer = await client.post("/v1/chat/completions", json=chat("Hi"), headers={"X-Request-Id": "r-1"})
    assert answer.headers["x-request-id"] == "r-1"
    refused = await client.post("/v1/chat/completions", json={}, headers={"X-Request-Id": "r-2"})
    assert (refused.status_code, refused.headers["x-request-id"]) == (400, "r-2")


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_client_that_leaves_ends_its_request(simulator: Starter, is_streamed: bool) -> None:
    client, running = await simulator(speed=0.05)
    body = chat("Hi", **(LONG | {"stream": is_streamed}))
    task = asyncio.create_task(client.post("/v1/chat/completions", json=body))
    await _until(lambda: running.core.engine.load().running == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await _until(lambda: running.core.engine.load().running == 0 and running.core.in_flight == 0)
    assert (await client.get("/sim/requests")).json()["requests"][0]["outcome"] == "aborted"
    assert (await client.get("/sim/state")).json()["aborted"] == 1


async def test_requests_queue_for_kv_and_all_end(simulator: Starter) -> None:
    client, running = await simulator(kv_tokens=512, max_model_len=512, speed=5.0)
    texts = [f"{index} " + "word " * 200 for index in range(4)]
    posts = [client.post("/v1/chat/completions", json=chat(text, max_tokens=100)) for text in texts]
    waiting: list[int] = []

    async def watch() -> None:
        while True:
            waiting.append(running.core.engine.load().waiting)
            await asyncio.sleep(0.001)

    watcher = asyncio.create_task(watch())
    answers = await asyncio.gather(*posts)
    watcher.cancel()
    assert [answer.status_code for answer in answers] == [200] * 4
    assert max(waiting) >= 2
    assert running.core.engine.load().used_tokens == 0


async def test_idle_connections_are_closed_by_the_server(simulator: Starter) -> None:
    _, running = await simulator(keepalive_timeout_s=0.2)
    host, _, port = running.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(30):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200")
    writer.close()
    await writer.wait_closed()


async def test_a_taken_port_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="address already in use"):
            await start(SimulatorSettings(port=taken.getsockname()[1]))


def _wait_refused(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/health")
        except httpx.TransportError:
            return
        time.sleep(0.005)
    pytest.fail("the port still answers")


@pytest.mark.slow
def test_sigterm_without_grace_ends_streams_with_the_engines_error() -> None:
    with SimulatorProcess("--speed", "0.05") as process, httpx.Client(timeout=30) as client:
        with client.stream("POST", f"{process.url}/v1/chat/completions", json=chat("Hi", **LONG)) as answer:
            lines = answer.iter_lines()
            next(lines)
            process.process.send_signal(signal.SIGTERM)
            body = "\n".join(lines)
        assert parsed_events(body)[-1]["error"]["message"].startswith("EngineCore encountered an issue")
        assert events(body)[-1] == "[DONE]"
        assert process.process.wait(timeout=30) == 0


@pytest.mark.slow
def test_sigterm_can_leave_requests_hanging_until_a_second_signal() -> None:
    with SimulatorProcess("--speed", "0.5", "--sigterm", "hang") as process, httpx.Client(timeout=2) as client:
        with client.stream("POST", f"{process.url}/v1/chat/completions", json=chat("Hi", **LONG)) as answer:
            lines = answer.iter_lines()
            next(lines)
            process.process.send_signal(signal.SIGTERM)
            _wait_refused(process.url)
            with pytest.raises(httpx.ReadTimeout):
                list(lines)
        # The client above has gone, so nothing runs any more; the process stays all the same.
        assert process.process.poll() is None
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(timeout=30) == 0


@pytest.mark.slow
def test_sigterm_with_grace_drains_while_health_says_200() -> None:
    flags = ("--speed", "1", "--shutdown-timeout", "30")
    with SimulatorProcess(*flags) as process, httpx.Client(base_url=process.url, timeout=30) as client:
        body = chat("Hi", stream=True, ignore_eos=True, max_tokens=120)
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            lines = answer.iter_lines()
            next(lines)
            process.process.send_signal(signal.SIGTERM)
            refused = client.post("/v1/chat/completions", json=chat("Hi"))
            while refused.status_code == 200:
                refused = client.post("/v1/chat/completions", json=chat("Hi"))
            assert refused.status_code == 500
            assert refused.json()["error"]["message"] == "cannot schedule new futures after shutdown"
            assert client.get("/health").status_code == 200
            rest = "\n".join(lines)
        assert parsed_events(rest)[-1]["choices"][0]["finish_reason"] == "length"
        assert process.process.wait(timeout=30) == 0
