"""What clients and engines say stays out of the log, of standard error and of traces, however it is said."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.api.auth import hash_key
from tests.app.running import MODEL, Running, chat_body, running, until
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.telemetry.collector import Collector
from tests.upstream.scripted import Exchange, json_response

SECRET = "Xyzzy-plugh-7734"  # sixteen bytes: its base64 is the same wherever it begins at a multiple of three
KEY = f"vgw-{SECRET}"
HEADERS = {
    "Authorization": f"Bearer {KEY}", "Cookie": f"session={SECRET}", "X-Anything": SECRET, "tracestate": f"v={SECRET}",
    "X-Request-Id": f"two words {SECRET}", "X-Session-Id": SECRET, "X-Smg-Key": SECRET,
}  # fmt: skip
SPELLINGS = (SECRET, SECRET.lower(), base64.b64encode(SECRET.encode()).decode()[:20], SECRET.encode().hex())
POLICY = f"tenant: acme\nkeys: ['{hash_key(KEY)}']\nhosts: ['images.example']\n"


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return chat_body(messages=[{"role": "user", "content": [{"type": "text", "text": SECRET}, *parts]}])


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


PICTURE = data_url(drawn.png(448, 448), "image/png")
_SAID = (
    message(),
    message(image(PICTURE)),
    message(image("data:image/png;base64," + base64.b64encode(SECRET.encode() * 90).decode())),
    message(image(f"data:text/{SECRET},{SECRET}")),
    message(image(f"https://user:{SECRET}@127.0.0.1/{SECRET}.png?key={SECRET}")),
    message(image(f"https://images.example/{SECRET}?key={SECRET}#{SECRET}")),
    message({"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{SECRET}"}}),
    message({"type": SECRET, "x": SECRET}),
    chat_body(user=SECRET, metadata={SECRET: SECRET}, bootstrap_host=SECRET, cache_salt=SECRET, tools=[SECRET]),
    chat_body(messages=SECRET),
    chat_body(max_tokens=SECRET, temperature=SECRET, n=SECRET),
    chat_body(stream=True),
)
BODIES: tuple[bytes, ...] = (
    *(json.dumps(body).encode() for body in _SAID),
    b'{"model": "' + SECRET.encode(),
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"' + SECRET.encode() + b'": 1, "' + SECRET.encode() + b'": 2}',
    SECRET.encode() + b"\xff\xfe",
)
RUBBISH = (
    f"{SECRET}\r\n\r\n",
    f"HTTP/1.1 abc {SECRET}\r\n{SECRET}: {SECRET}\r\n\r\n",
    f"HTTP/1.1 200 OK\r\nX: {SECRET}",
    f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{SECRET}\r\n",
    f"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{SECRET}",
    f"HTTP/1.1 500 {SECRET}\r\nContent-Length: 16\r\n\r\n{SECRET}",
)


async def chat(exchange: Exchange) -> None:
    """What the request's own words ask for: rubbish by number, else an answer that repeats all of it."""
    await exchange.read_body()
    numbers = exchange.headers("x-rubbish")
    if numbers:
        await exchange.send(RUBBISH[int(numbers[0])].encode())
        exchange.writer.close()
        return
    usage = {"prompt_tokens": 300, "completion_tokens": 3, "total_tokens": 303, "note": SECRET}
    answer = {"id": SECRET, "model": SECRET, "choices": [{"message": {"content": SECRET}}], "usage": usage}
    await exchange.send(json_response(json.dumps(answer).encode()))


async def broken_framing(world: Running) -> None:
    """A body whose chunks are none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.data_port)
    head = f"POST /v1/chat/completions?{SECRET} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {KEY}\r\n"
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\n".encode())
    await writer.drain()
    await until(lambda: len(world.gateway._inflight) == 1)
    writer.write(f"12345{SECRET}\r\n{SECRET}\r\n".encode())
    await reader.read()
    writer.close()


async def ask(world: Running, body: bytes, path: str = "/v1/chat/completions", **headers: str) -> int:
    try:
        answer = await world.data.post(f"{path}?api_key={SECRET}&{SECRET}", content=body, headers=HEADERS | headers)
    except httpx.TransportError:
        return 0
    return answer.status_code


async def throw(world: Running) -> list[int]:
    statuses = [await ask(world, body) for body in BODIES]
    statuses += [await ask(world, BODIES[0], **{"X-Rubbish": str(place)}) for place in range(len(RUBBISH))]
    for headers in ({"Authorization": f"Bearer wrong-{SECRET}"}, {"X-Vlmgw-Task": SECRET}, {"x-api-key": SECRET}):
        statuses.append(await ask(world, BODIES[0], **headers))
    statuses.append(await ask(world, SECRET.encode(), "/v1/audio/transcriptions"))
    statuses.append(await ask(world, SECRET.encode(), "/nowhere"))
    await broken_framing(world)
    return statuses


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
async def test_nothing_that_was_said_is_told(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], mode: str
) -> None:
    (tmp_path / "acme.yaml").write_text(f"{POLICY}mode: {mode}\n")
    with Collector() as collector:
        flags: dict[str, object] = {"policies": str(tmp_path), "tracing.otlp_endpoint": collector.url}
        async with running(chat, **flags) as world:
            statuses = await throw(world)
            await until(lambda: len(statuses) > len(BODIES))
    out, err = capsysbinary.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    exchanges = [line for line in lines if line["event"] == "exchange"]
    assert len(exchanges) == len(statuses) + 1
    assert {200, 400, 401, 404, 502} <= set(statuses)
    for spelling in SPELLINGS:
        assert spelling not in json.dumps(lines, ensure_ascii=False), [line for line in lines if spelling in str(line)]
        assert spelling.encode() not in err
        assert not [raw for raw in collector.raw if spelling.encode() in raw]
    _check_whole(next(line for line in exchanges if "images" in line and line["outcome"] == "ok"))


def _check_whole(line: dict[str, Any]) -> None:
    """An access line has every stage's time, sizes, tokens before and after, the decision and why."""
    assert list(line["stages_ms"]) == [
        "accept", "read", "resolve", "check", "fetch", "plan", "estimate", "reserve", "decide", "prepare", "splice",
        "forward", "relay", "settle",
    ]  # fmt: skip
    assert min(line["request_bytes"], line["forwarded_bytes"], line["response_bytes"]) > 100
    assert (line["images"]["tokens_original"], line["estimate"]["image"]) == (196, 196)
    assert line["usage"] == {"prompt": 300, "completion": 3}
    assert (line["tenant"], line["task_reason"], line["backend"]) == ("acme", line["task_reason"], "engine")
    assert line["decision"]
    assert line["model"] == MODEL
    assert len(line["trace_id"]) == 32
