"""The stand-ins do what backend.json and origin.json say, seen through the runner's own client; no gateway here."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.case_runner.backend import StandInBackend
from tests.case_runner.behaviour import BadScript, read_script
from tests.case_runner.checks.client import endings
from tests.case_runner.http_client import ClientCloses, Response, exchange, raw_bytes, request_bytes
from tests.case_runner.origin import PRIVATE_ADDRESS, StandInOrigin, read_routes
from tests.case_runner.polling import until
from tests.case_runner.specimens import CHAT, chat

JSON = [["Content-Type", "application/json"]]
OK = {"status": 200, "headers": JSON, "framing": "content-length", "writes": [{"text": '{"a":1}'}], "end": "normal"}
GZIPPED = base64.b64encode(gzip.compress(b'{"a":1}')).decode()
STREAM = {
    "status": 200, "headers": [["Content-Type", "text/event-stream"]], "framing": "chunked",
    "writes": [{"text": "data: 1\n\n"}, {"flush": True, "sleep_ms": 20}, {"text": "data: 2\n\n"}],
}  # fmt: skip


@pytest_asyncio.fixture
async def backend() -> AsyncIterator[StandInBackend]:
    made = StandInBackend(8192)
    await made.open(2)
    yield made
    await made.stop()


@pytest_asyncio.fixture
async def origin() -> AsyncIterator[StandInOrigin]:
    made = StandInOrigin()
    await made.open()
    yield made
    await made.stop()


async def _begin(backend: StandInBackend, **spec: Any) -> None:
    await backend.begin(read_script(spec), CHAT)


async def _ask(
    backend: StandInBackend, replica: int = 0, *, path: str = CHAT, body: bytes = b"", coding: str = ""
) -> Response:
    headers = {"Accept-Encoding": coding} if coding else {}
    outgoing = request_bytes("POST", path, headers, body or chat(), "x")
    return await exchange(backend.replicas[replica].port, outgoing, deadline_s=30)


@pytest.mark.parametrize(
    ("behaviour", "ends"),
    [
        (OK, "complete"),
        ({**OK, "end": "fin"}, "aborted-transfer"),
        ({**OK, "end": "rst"}, "aborted-transfer"),
        ({**OK, "framing": "raw"}, "complete"),
        ({**STREAM, "end": "chunked-end"}, "complete"),
        ({**STREAM, "end": "fin"}, "aborted-transfer"),
        ({**STREAM, "end": "rst"}, "aborted-transfer"),
        ({**OK, "writes": [], "end": "rst-before-status"}, "closed-without-response"),
        ({"end": "rst-after-request"}, "closed-without-response"),
    ],
)
async def test_every_end_looks_as_it_is_called(backend: StandInBackend, behaviour: dict[str, Any], ends: str) -> None:
    await _begin(backend, on_request=[behaviour])
    assert ends in endings(await _ask(backend))
    assert len(backend.calls) == 1


async def test_a_hanging_backend_is_seen_to_be_left(backend: StandInBackend) -> None:
    await _begin(backend, on_request=[{"end": "hang"}])
    outgoing = request_bytes("POST", CHAT, {}, chat(), "x")
    answer = await exchange(backend.replicas[0].port, outgoing, deadline_s=30, closes=ClientCloses(after_s=0.1))
    assert answer.ending == "client-left"
    assert await until(lambda: bool(backend.calls) and backend.calls[0].wire.closed_at_s is not None, within_s=30)


async def test_a_replica_that_does_not_listen_refuses_and_keeps_its_port(backend: StandInBackend) -> None:
    await _begin(backend, replicas=2, replica_0="not-listening", on_request=[OK])
    with pytest.raises(ConnectionRefusedError):
        await _ask(backend, 0)
    assert (await _ask(backend, 1)).status == 200
    await _begin(backend, on_request=[OK])
    assert (await _ask(backend, 0)).status == 200


async def test_requests_are_counted_over_all_replicas_and_the_last_behaviour_repeats(backend: StandInBackend) -> None:
    await _begin(backend, on_request=[OK, {**OK, "status": 503}])
    assert [(await _ask(backend, replica)).status for replica in (0, 1, 0)] == [200, 503, 503]


async def test_a_later_not_listening_closes_the_port(backend: StandInBackend) -> None:
    await _begin(backend, on_request=[OK, {"end": "not-listening"}])
    assert (await _ask(backend)).status == 200

    async def refused() -> bool:
        try:
            await _ask(backend)
        except ConnectionRefusedError:
            return True
        return False

    assert await refused() or await refused()


async def test_probes_are_answered_as_vllm_and_do_not_count(backend: StandInBackend) -> None:
    await _begin(backend, on_request=[OK])
    models = json.loads(bytes((await _ask(backend, path="/v1/models")).body))
    assert models["data"][0] | {"permission": []} == models["data"][0]
    assert (models["data"][0]["id"], models["data"][0]["max_model_len"]) == ("vl-test", 8192)
    assert b"vllm:num_requests_running" in (await _ask(backend, path="/metrics")).body
    assert (await _ask(backend, path="/server_info")).status == 404
    assert backend.calls == []


async def test_the_default_answer_streams_when_asked(backend: StandInBackend) -> None:
    await _begin(backend)
    assert json.loads(bytes((await _ask(backend)).body))["object"] == "chat.completion"
    streamed = await _ask(backend, body=chat(stream=True))
    assert streamed.body.endswith(b"data: [DONE]\n\n")
    assert streamed.event_at_s() is not None


async def test_a_coding_is_only_for_those_who_take_it(backend: StandInBackend) -> None:
    coded = {**OK, "headers": [*JSON, ["Content-Encoding", "gzip"]], "writes": [{"b64": GZIPPED}]}
    await _begin(backend, on_request=[coded], only_if_accept_encoding_contains="gzip")
    coded_answer = await _ask(backend, coding="gzip")
    assert coded_answer.head is not None
    assert coded_answer.head.get("content-encoding") == "gzip"
    without = await _ask(backend, coding="identity")
    assert without.head is not None
    assert not without.head.has("content-encoding")
    assert bytes(without.body) == b'{"a":1}'


@pytest.mark.parametrize("spec", [{"idle_close_ms": 50}, {"close_after_response": True, "announce": "keep-alive"}])
async def test_connections_are_closed_after_the_answer(backend: StandInBackend, spec: dict[str, Any]) -> None:
    await _begin(backend, on_request=[OK], **spec)
    outgoing = request_bytes("POST", CHAT, {}, chat(), "x")
    answer = await exchange(backend.replicas[0].port, outgoing, deadline_s=30, watch_close=True)
    assert (answer.status, answer.closed_afterwards) == (200, True)


@pytest.mark.parametrize("spec", [{"on_requests": []}, {"on_request": [{"end": "vanish"}]}, {"on_request": [{"x": 1}]}])
def test_a_script_that_nobody_knows_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(BadScript):
        read_script(spec)


async def test_the_client_waits_for_100_and_leaves_as_told(backend: StandInBackend) -> None:
    await _begin(backend, on_request=[{**STREAM, "end": "hang"}])
    outgoing = request_bytes("POST", CHAT, {}, chat(), "x")
    answer = await exchange(backend.replicas[0].port, outgoing, deadline_s=30, closes=ClientCloses(after_events=2))
    assert answer.ending == "client-left"
    raw = raw_bytes(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}")
    assert (raw.expects_continue, raw.body) == (True, b"{}")


# --- origin -----------------------------------------------------------------------------------------------------------


async def _get(origin: StandInOrigin, target: str, **headers: str) -> Response:
    outgoing = request_bytes("GET", target, headers, b"", "origin.example.test")
    return await _exchange_with("127.0.0.9", origin.port, outgoing)


async def _exchange_with(address: str, port: int, outgoing: Any) -> Response:
    reader, writer = await asyncio.open_connection(address, port)
    began_s = time.monotonic()
    writer.write(outgoing.head)
    response = Response(began_s)
    try:
        async with asyncio.timeout(30):
            response.body += await reader.readuntil(b"\r\n\r\n")
            response.body += await reader.read(1 << 20)
    except (OSError, asyncio.IncompleteReadError):
        response.ending = "aborted"
    writer.close()
    return response


def _serve(origin: StandInOrigin, folder: Path, *routes: dict[str, Any]) -> None:
    origin.begin(read_routes({"routes": list(routes)}, folder))


async def test_routes_are_tried_in_order_by_raw_target_header_and_number(origin: StandInOrigin, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"file")
    _serve(
        origin, tmp_path,
        {"path_raw": "/a%2F?x=", "status": 200, "body_file": "a.bin", "nth": 1},
        {"path_raw": "/a%2F?x=", "status": 200, "body_text": "second", "nth": 2},
        {"path_raw": "/u", "status": 200, "body_text": "known", "when": {"header_present": "User-Agent"}},
        {"path_raw": "/u", "status": 403},
    )  # fmt: skip
    assert (await _get(origin, "/a%2F?x=")).body.endswith(b"file")
    assert (await _get(origin, "/a%2F?x=")).body.endswith(b"second")
    assert b" 403 " in (await _get(origin, "/u")).body
    assert (await _get(origin, "/u", **{"User-Agent": "t"})).body.endswith(b"known")
    assert b" 404 " in (await _get(origin, "/a/?x=")).body
    assert [call.target for call in origin.calls] == ["/a%2F?x=", "/a%2F?x=", "/u", "/u", "/a/?x="]


async def test_an_endless_body_is_counted_until_the_client_leaves(origin: StandInOrigin, tmp_path: Path) -> None:
    repeat = {"b64": "AAAA" * 1000, "endless": True}
    headers = [["Content-Length", "5000000000"]]
    _serve(origin, tmp_path, {"path_raw": "/e", "status": 200, "headers": headers, "body_repeat": repeat})
    await _get(origin, "/e")
    assert await until(lambda: origin.calls[0].wire.closed_at_s is not None, within_s=5)
    assert origin.calls[0].wire.sent_bytes > 1000


async def test_a_reset_and_an_unknown_route_key(origin: StandInOrigin, tmp_path: Path) -> None:
    _serve(origin, tmp_path, {"path_raw": "/r", "status": 200, "headers": [["Content-Length", "9"]], "end": "reset"})
    assert (await _get(origin, "/r")).ending == "aborted"
    with pytest.raises(BadScript):
        _serve(origin, tmp_path, {"path_raw": "/r", "colour": "red"})


@pytest.mark.parametrize("port_of", [lambda origin: origin.port, lambda origin: origin.private_port])
async def test_a_connection_to_a_private_listener_is_seen(
    origin: StandInOrigin, port_of: Callable[[StandInOrigin], int]
) -> None:
    origin.begin(())
    _, writer = await asyncio.open_connection(PRIVATE_ADDRESS, port_of(origin))
    assert await until(lambda: origin.private_connections == 1, within_s=5)
    writer.close()
