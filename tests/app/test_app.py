"""A whole gateway in one process: everything wired for real, an engine that does as it is told."""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
import threading
import time
import zlib
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.api.auth import hash_key
from gateway.app import Gateway
from gateway.telemetry.catalogue import DECLARATIONS
from tests.app.running import COMPLETION, DEADLINE_S, MODEL, Running, chat_body, engine, running, settings_for, until
from tests.journey.test_journey import STAGES
from tests.upstream.scripted import Exchange, ScriptedEngine, answering, json_response

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def stages_of(answer: httpx.Response) -> dict[str, float]:
    entries = (entry.split(";dur=") for entry in answer.headers["Server-Timing"].split(", "))
    return {stage: float(milliseconds) for stage, milliseconds in entries}


def small_png() -> str:
    """64 x 64, drawn here byte by byte."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * 4, y * 4, 128)[c] for x in range(64) for c in range(3)) for y in range(64))
    png = (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
        + part(b"IDAT", zlib.compress(rows))
        + part(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()


async def test_a_day_in_its_life() -> None:
    """Text, an image, models, health, errors, metrics, explain: one gateway, since each start costs a process."""
    async with running() as gateway:
        await check_text(gateway)
        await check_image(gateway)
        await check_ids(gateway)
        await check_other_paths(gateway)
        await check_refusals(gateway)
        await check_explain(gateway)
        await check_estimate(gateway)
        await check_config(gateway)
        await check_metrics(gateway)


async def check_text(gateway: Running) -> None:
    answer = await gateway.chat()
    assert (answer.status_code, answer.content) == (200, COMPLETION)
    assert answer.headers["x-vlmgw-backend"] == "engine"
    assert int(answer.headers["x-vlmgw-prompt-tokens-estimate"]) > 0
    assert set(stages_of(answer)) == set(STAGES[:12]), "all stages before the first byte"
    sent = [exchange for exchange in gateway.engine.exchanges if exchange.target == "/v1/chat/completions"]
    assert sent[-1].body == answer.request.content


async def check_image(gateway: Running) -> None:
    content = [{"type": "image_url", "image_url": {"url": small_png()}}, {"type": "text", "text": "What?"}]
    answer = await gateway.chat(messages=[{"role": "user", "content": content}])
    assert answer.status_code == 200
    assert answer.headers["x-vlmgw-images"] == "passed=1, shrunk=0, recoded=0"
    assert answer.headers["x-vlmgw-geometry"] == "64x64"
    assert answer.headers["x-vlmgw-image-tokens"] == "64", "the processor enlarges to 256 x 256"


async def check_ids(gateway: Running) -> None:
    answer = await gateway.data.post("/v1/chat/completions", json=chat_body(), headers={"X-Request-Id": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1"
    answer = await gateway.data.post("/v1/chat/completions", json=chat_body(), headers={"X-Request-Id": "not usable"})
    assert len(answer.headers["x-request-id"]) == 32
    sent = [exchange for exchange in gateway.engine.exchanges if exchange.target == "/v1/chat/completions"]
    assert [exchange.headers("x-request-id") for exchange in sent[-2:]] == [
        ["mine-1"],
        [answer.headers["x-request-id"]],
    ]


async def check_other_paths(gateway: Running) -> None:
    assert [entry["id"] for entry in (await gateway.data.get("/v1/models")).json()["data"]] == [MODEL]
    assert (await gateway.data.get("/health")).status_code == 200
    passed = await gateway.data.post("/v1/audio/translations", content=b"x" * 100_000)
    assert passed.status_code == 404, "the engine's own answer"
    sent = [exchange for exchange in gateway.engine.exchanges if exchange.target == "/v1/audio/translations"]
    assert [exchange.body for exchange in sent] == [b"x" * 100_000]


async def check_refusals(gateway: Running) -> None:
    path = "/v1/chat/completions"
    refusals = {
        "not_json": await gateway.data.post(path, content=b"["),
        "model_not_found": await gateway.chat(model="nobody"),
        "unsupported_content_encoding": await gateway.data.post(
            path, content=b"x", headers={"Content-Encoding": "gzip"}
        ),
        "route_not_found": await gateway.data.post("/pause"),
        "method_not_allowed": await gateway.data.get(path),
        "image_undecodable": await gateway.chat(
            messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
        ),
    }
    for code, answer in refusals.items():
        assert answer.json()["error"]["code"] == code
        assert answer.headers["x-vlmgw-error"] == code
        assert answer.headers["x-request-id"]


async def check_estimate(gateway: Running) -> None:
    """The same body on the data port: priced, not sent."""
    sent_before = len(gateway.engine.exchanges)
    part = {"type": "image_url", "image_url": {"url": small_png()}}
    messages = [{"role": "user", "content": [part, {"type": "text", "text": "What is it?"}]}]
    answer = await gateway.data.post("/v1/estimate", json={"model": MODEL, "messages": messages})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["images"][0]["tokens"], told["images"][0]["reason"]) == (64, "conforming")
    assert told["decision"]["backend"] == "engine"
    chats = [each for each in gateway.engine.exchanges[sent_before:] if each.target.startswith("/v1/chat/")]
    assert chats == []
    assert (await gateway.data.post("/v1/estimate", content=b"[")).status_code == 400
    asked = {
        "model": MODEL,
        "input": [{"role": "user", "content": [{"type": "input_image", "image_url": small_png()}]}],
    }
    priced = await gateway.data.post("/v1/estimate?path=/v1/responses", json=asked)
    assert (priced.status_code, priced.json()["call"]["images"]) == (200, 1)
    told = (await gateway.admin.post("/-/explain?path=/v1/responses", json=asked)).json()
    assert (told["call"]["images"], told["decision"]["backend"]) == (1, "engine")
    told = (await gateway.admin.post("/-/explain?path=/v1/nobody", json=asked)).json()
    assert told["refused"]["message"] == "The gateway reads no '/v1/nobody'."


async def check_explain(gateway: Running) -> None:
    before = len(gateway.engine.exchanges)
    told = (await gateway.admin.post("/-/explain", json=chat_body())).json()
    assert told["decision"]["backend"] == "engine"
    assert [exchange.target for exchange in gateway.engine.exchanges[before:]].count("/v1/chat/completions") == 0


async def check_config(gateway: Running) -> None:
    assert (await gateway.admin.get("/-/config")).json()["backends"][0]["name"] == "engine"
    assert (await gateway.admin.get("/readyz")).status_code == 200
    assert "\n[+]backends 1 of 1 up\n" in (await gateway.admin.get("/readyz?verbose")).text


async def check_metrics(gateway: Running) -> None:
    await until(lambda: recorded(gateway, "vlmgw_requests_total", 4, dialect="openai_chat", outcome="ok"))
    await until(lambda: reserved(gateway, False))
    text = (await gateway.admin.get("/metrics")).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    sampled = {d.full_name.removesuffix("_total"): d for d in DECLARATIONS}
    ours = {name for name in families if name.startswith("vlmgw_")}
    assert ours <= set(sampled)
    for name in ("build_info", "pool_workers", "body_memory_bytes", "backend_up", "draining", "requests_inflight"):
        assert families[f"vlmgw_{name}"].samples
    assert await gateway.metric("vlmgw_pool_workers") == 1
    assert await gateway.metric("vlmgw_body_memory_bytes") == 0
    assert await gateway.metric("vlmgw_backend_inflight", backend="engine") == 0
    assert await gateway.metric("vlmgw_budget_reserved_tokens", tenant="default") == 0


async def test_a_client_that_leaves_ends_it_upstream_and_gives_its_budget_back() -> None:
    """Before the answer, and in the middle of a stream."""
    left = asyncio.Queue[str]()

    async def silent(exchange: Exchange) -> None:
        await exchange.read_body()
        if b'"stream"' in exchange.body:
            await exchange.send(EVENTS + chunk(b"data: {}\n\n"))
        await exchange.left()
        left.put_nowait(exchange.target)
        exchange.writer.close()

    async with running(silent) as gateway:
        for fields in ({}, {"stream": True}):
            body = httpx.Request("POST", "http://x", json=chat_body(**fields)).content
            _, writer = await asyncio.open_connection("127.0.0.1", gateway.data_port)
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            await until(lambda: reserved(gateway, True))
            assert await gateway.metric("vlmgw_backend_inflight", backend="engine") == 1
            writer.transport.abort()
            async with asyncio.timeout(DEADLINE_S):
                assert await left.get() == "/v1/chat/completions"
            await until(lambda: reserved(gateway, False))
            assert await gateway.metric("vlmgw_backend_inflight", backend="engine") == 0
        await until(lambda: recorded(gateway, "vlmgw_requests_total", 2, dialect="openai_chat", outcome="client_gone"))


async def recorded(gateway: Running, name: str, count: int, **labels: str) -> bool:
    """An exchange is recorded when it has ended, which its client may see a moment earlier."""
    counted = await gateway.metric(name, **labels)
    assert counted <= count
    return counted == count


async def reserved(gateway: Running, something: bool) -> bool:
    held = await gateway.metric("vlmgw_budget_reserved_tokens", tenant="default")
    inflight = await gateway.metric("vlmgw_backend_inflight", backend="engine")
    return (held > 0) == something and (inflight > 0) == something


async def test_a_slow_reader_holds_the_engine_back() -> None:
    sent = 0
    piece = chunk(b"data: " + b"x" * 65_000 + b"\n\n")

    async def endless(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.read_body()
        await exchange.send(EVENTS)
        while True:
            await exchange.send(piece)
            sent += len(piece)

    async with running(endless) as gateway:
        async with gateway.data.stream("POST", "/v1/chat/completions", json=chat_body(stream=True)) as answer:
            assert answer.status_code == 200
            seen = -1
            while seen != sent or not sent:  # until it stands still
                seen = sent
                await asyncio.sleep(0.2)
            # Two sockets' kernel buffers and our own water marks, and nothing that grows with the answer.
            assert 0 < sent < 48 << 20
        await until(lambda: reserved(gateway, False))


async def test_the_page_goes_and_the_rest_of_the_admin_port_stays() -> None:
    async with running(None, **{"server.admin_page": False}) as gateway:
        assert (await gateway.admin.get("/ui")).status_code == 404
        assert (await gateway.admin.get("/readyz")).status_code == 200


async def test_laborious_bodies_are_cut_in_one_thread() -> None:
    async with running() as gateway:
        body = {**chat_body(), "x": [{}] * 11_000}
        posts = [gateway.data.post("/v1/chat/completions", json=body) for _ in range(8)]
        assert [answer.status_code for answer in await asyncio.gather(*posts)] == [200] * 8
        assert sum(thread.name.startswith("cut") for thread in threading.enumerate()) == 1


async def test_what_nobody_foresaw_is_a_500_without_a_word_of_it() -> None:
    async with running() as gateway:

        def broken() -> object:
            raise LookupError("10.9.8.7 secret")

        gateway.gateway._upstream.views = broken  # type: ignore[method-assign,assignment]
        answer = await gateway.chat()
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "gateway_bug")
        assert "secret" not in str(answer.headers) + answer.text
        assert "10.9.8.7" not in answer.text
        del gateway.gateway._upstream.views
        assert (await gateway.chat()).status_code == 200


async def test_the_first_signal_drains_and_nothing_in_flight_is_lost() -> None:
    release = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await exchange.read_body()
        await release.wait()
        await exchange.send(json_response(COMPLETION))

    async with running(slow) as gateway:
        pending = asyncio.create_task(gateway.chat())
        await until(lambda: reserved(gateway, True))
        gateway.gateway.ask_drain()
        await until(lambda: is_unready(gateway))
        assert (await gateway.admin.get("/livez")).status_code == 200
        assert await gateway.metric("vlmgw_draining") == 1
        release.set()
        answer = await pending
        assert (answer.status_code, answer.content) == (200, COMPLETION)
        assert await gateway.life


async def is_unready(gateway: Running) -> bool:
    return (await gateway.admin.get("/readyz")).status_code == 503


async def test_the_second_signal_cuts_what_is_left_and_says_so() -> None:
    """Before the answer as an error of its own, between events as the stream's last one; nobody shall send it again."""

    async def never(exchange: Exchange) -> None:
        await exchange.read_body()
        if b'"stream"' in exchange.body:
            await exchange.send(EVENTS + chunk(b"data: {}\n\n"))
        await exchange.left()
        exchange.writer.close()

    async with running(never, **{"server.settle_s": 3600}) as gateway:
        pending = asyncio.create_task(gateway.chat())
        body = httpx.Request("POST", "http://x", json=chat_body(stream=True)).content
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.data_port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        begun = await reader.readuntil(b"data: {}\n\n")
        assert begun.startswith(b"HTTP/1.1 200 ")
        await until(lambda: gateway.engine.targets.count("/v1/chat/completions") == 2)
        await gateway.admin.post("/-/drain")
        await until(lambda: is_unready(gateway))
        assert not gateway.life.done()
        gateway.gateway.ask_drain()
        assert not await gateway.life
        answer = await pending
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "drain_ended")
        assert answer.headers["x-should-retry"] == "false"
        rest = await reader.read()
        assert b'"drain_ended"' in rest
        assert rest.endswith(b"0\r\n\r\n")
        writer.close()


async def test_reload_takes_over_everything_or_nothing(tmp_path: Path) -> None:
    policy = tmp_path / "acme.yaml"
    policy.write_text(f"tenant: acme\nkeys: ['{hash_key('k1')}']\nrules:\n  max_images: 3\n")
    async with running(policies=str(tmp_path)) as gateway:
        keyed = {"Authorization": "Bearer k1"}

        async def status(headers: dict[str, str]) -> int:
            answer = await gateway.data.post("/v1/chat/completions", json=chat_body(), headers=headers)
            return answer.status_code

        assert (await status({}), await status(keyed)) == (401, 200)
        sent = [exchange for exchange in gateway.engine.exchanges if exchange.target == "/v1/chat/completions"]
        assert sent[-1].headers("authorization") == [], "a tenant's key stays here"
        policy.write_text("tenant: acme\nkeys: []\nrules:\n  max_imges: 3\n  max_pixels: many\n")
        answer = await gateway.admin.post("/-/reload")
        assert answer.status_code == 422
        assert len(answer.json()["problems"]) == 2
        assert all("acme.yaml:" in problem for problem in answer.json()["problems"])
        assert (await status({}), await status(keyed)) == (401, 200)
        assert await gateway.metric("vlmgw_config_last_reload_successful") == 0
        policy.write_text(f"tenant: acme\nkeys: ['{hash_key('k2')}']\n")
        assert (await gateway.admin.post("/-/reload")).json() == {"reloaded": True, "problems": []}
        assert (await status(keyed), await status({"x-api-key": "k2"})) == (401, 200)
        assert await gateway.metric("vlmgw_config_last_reload_successful") == 1
        await until(lambda: recorded(gateway, "vlmgw_tenant_requests_total", 3, tenant="acme", outcome="ok"))
        await until(lambda: recorded(gateway, "vlmgw_tenant_requests_total", 3, tenant="other", outcome="rejected"))


async def test_while_the_loop_is_blocked_the_admin_port_answers_and_the_canary_tells() -> None:
    async with running() as gateway:
        stalls = await gateway.metric("vlmgw_loop_stalls_total")
        with httpx.Client(base_url=gateway.admin.base_url, trust_env=False, timeout=DEADLINE_S) as blocking:
            time.sleep(0.2)  # noqa: ASYNC251  # the point of the test
            assert blocking.get("/livez").status_code == 200  # noqa: ASYNC212  # the same
        await until(lambda: more_stalls(gateway, stalls))


async def more_stalls(gateway: Running, than: float) -> bool:
    return await gateway.metric("vlmgw_loop_stalls_total") > than


async def test_looking_at_backends_and_explaining_offline_leave_nothing_running() -> None:
    async with ScriptedEngine(engine(answering(json_response(COMPLETION)))) as behind:
        (view,), _ = await Gateway(settings_for(behind.url)).look_at_backends()
        assert (view.name, view.models) == ("engine", (MODEL,))
        body = httpx.Request("POST", "http://x", json=chat_body()).content
        told = await Gateway(settings_for(behind.url)).explain_offline(body, {"x-vlmgw-task": "chat"})
        assert "refused" not in told
        assert "/v1/chat/completions" not in behind.targets
        assert [task for task in asyncio.all_tasks() if "watch" in task.get_name()] == []


@pytest.mark.parametrize("taken", ["server.port", "server.admin_port"])
async def test_a_start_that_fails_leaves_nothing_behind(taken: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        gateway = Gateway(settings_for("http://127.0.0.1:9", **{taken: holder.getsockname()[1]}))
        with pytest.raises(OSError, match="in use"):
            await gateway.start()
        await gateway.stop()
        await gateway.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}
