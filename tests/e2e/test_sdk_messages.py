"""The official Anthropic SDK, unmodified, against a gateway process with a simulated engine behind it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import MessageParam, ToolParam

from gateway.api.auth import hash_key
from tests.e2e.processes import Engine, Gateway, until, write_policies
from tests.simulator import drawn
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

CAP_PIXELS = 1280 * 32 * 32
ALICE, BOB = "vgw-alice-0123456789", "vgw-bob-0123456789"
# A photograph above the cap, and a drawing that conforms.
BIG, SMALL = drawn.photograph(2000, 1500), drawn.png(448, 448)
TOOL: ToolParam = {
    "name": "look_up",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}


def inline(data: bytes, media_type: str) -> Any:
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source, "cache_control": {"type": "ephemeral"}}


def remote(url: str) -> Any:
    return {"type": "image", "source": {"type": "url", "url": url}}


def user(*blocks: Any) -> list[MessageParam]:
    content: Any = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return [{"role": "user", "content": content}]


class _Picture(BaseHTTPRequestHandler):
    """An origin with one photograph."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "image/jpeg")
        self.send_header("Content-Length", str(len(BIG)))
        self.end_headers()
        self.wfile.write(BIG)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Picture)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://pictures.example.test:{server.server_port}/a.jpg"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(
        "--max-pixels", str(CAP_PIXELS), "--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Two tenants by key; bob may have one image."""
    folder = tmp_path_factory.mktemp("gateway")
    policies = write_policies(
        folder / "policies",
        alice=f"tenant: alice\nkeys: ['{hash_key(ALICE)}']\nhosts: ['pictures.example.test']\n",
        bob=f"tenant: bob\nkeys: ['{hash_key(BOB)}']\nrules:\n  max_images: 1\n",
    )
    file = folder / "gateway.json"
    reachable = {"public_networks": ["127.0.0.1/32"], "static_hosts": {"pictures.example.test": "127.0.0.1"}}
    file.write_text(json.dumps({"fetch": reachable}), encoding="utf-8")
    with Gateway(
        "--config", str(file), "--backend", engine.url, "--max-pixels", str(CAP_PIXELS),
        "--policies", str(policies), "--pool", "1",
    ) as running:  # fmt: skip
        yield running


@pytest.fixture(autouse=True)
def fresh(engine: Engine) -> None:
    engine.forget()


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Anthropic]:
    with Anthropic(base_url=gateway.url, api_key=ALICE, max_retries=0) as made:
        yield made


def said(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def idle(engine: Engine, gateway: Gateway) -> bool:
    return engine.state()["in_flight"] == 0 and gateway.metric("budget_reserved_tokens") == 0


# --- what a client asks for ------------------------------------------------------------------------------------------


def test_images_are_shrunk_or_passed_and_counted_as_the_engine_counts(client: Anthropic, engine: Engine) -> None:
    asked = user(inline(BIG, "image/jpeg"), "and", inline(SMALL, "image/png"), "differ?")
    raw = client.messages.with_raw_response.create(model=MODEL, max_tokens=100, system="Be brief", messages=asked)
    assert "2 images: 1312x960" in said(raw.parse())
    assert raw.headers["x-vlmgw-image-tokens"] == str(1230 + 196)
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0"
    (reached,) = engine.requests()
    assert reached["image_tokens"] == 1230 + 196
    assert reached["images"][1]["sent_bytes"] == len(SMALL)
    blocks = reached["body"]["messages"][0]["content"]
    assert [block.get("cache_control") for block in blocks] == [
        {"type": "ephemeral"},
        None,
        {"type": "ephemeral"},
        None,
    ]
    assert ALICE not in json.dumps(reached)


def test_a_body_that_conforms_is_forwarded_byte_for_byte(client: Anthropic, engine: Engine, gateway: Gateway) -> None:
    raw = client.messages.with_raw_response.create(
        model=MODEL, max_tokens=9, messages=user(inline(SMALL, "image/png"), "what?")
    )
    line = gateway.access_line(raw.headers["x-request-id"])
    assert line["request_bytes"] == line["forwarded_bytes"] == engine.requests()[0]["body_bytes"]


def test_a_wrong_type_is_put_right_and_the_file_kept(client: Anthropic, engine: Engine) -> None:
    client.messages.create(model=MODEL, max_tokens=9, messages=user(inline(SMALL, "image/jpeg"), "what?"))
    (reached,) = engine.requests()
    assert reached["body"]["messages"][0]["content"][0]["source"]["media_type"] == "image/png"
    assert reached["images"][0]["sent_bytes"] == len(SMALL)


def test_an_image_by_address_reaches_the_engine_as_base64(client: Anthropic, engine: Engine, origin: str) -> None:
    answer = client.messages.create(model=MODEL, max_tokens=100, messages=user(remote(origin), "Describe"))
    assert "1312x960" in said(answer)
    source = engine.requests()[0]["body"]["messages"][0]["content"][0]["source"]
    assert (source["type"], source["media_type"], "url" in source) == ("base64", "image/jpeg", False)


def test_a_data_url_in_a_url_source(client: Anthropic, engine: Engine) -> None:
    asked = user(
        remote(drawn.data_url(SMALL, "image/png")), remote(drawn.data_url(BIG, "image/jpeg")), "which is larger?"
    )
    raw = client.messages.with_raw_response.create(model=MODEL, max_tokens=100, messages=asked)
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0"
    sources = [block["source"]["type"] for block in engine.requests()[0]["body"]["messages"][0]["content"][:2]]
    assert sources == ["url", "base64"]


def test_streaming(client: Anthropic, gateway: Gateway) -> None:
    asked = user(inline(BIG, "image/jpeg"), "Describe")
    with client.messages.stream(model=MODEL, max_tokens=100, messages=asked) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
        request_id = stream.response.headers["x-request-id"]
    assert "1312x960" in text
    assert final.stop_reason == "end_turn"
    usage = final.usage
    counted = gateway.access_line(request_id)["usage"]
    assert counted["prompt"] == usage.input_tokens + (usage.cache_read_input_tokens or 0)
    assert counted["completion"] == usage.output_tokens > 1


def test_tools_answered_with_an_image(client: Anthropic) -> None:
    asked = user("call tool please")
    answer = client.messages.create(model=MODEL, max_tokens=100, messages=asked, tools=[TOOL])
    assert answer.stop_reason == "tool_use"
    (call,) = [block for block in answer.content if block.type == "tool_use"]
    assert call.input == {"city": "simulated", "days": 1}
    content = [{"type": "text", "text": "a map"}, inline(BIG, "image/jpeg")]
    told: Any = [
        *asked,
        {"role": "assistant", "content": [call.model_dump(exclude_none=True)]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": content}]},
    ]
    raw = client.messages.with_raw_response.create(model=MODEL, max_tokens=100, messages=told)
    assert raw.headers["x-vlmgw-images"] == "passed=0, shrunk=1, recoded=0"
    assert "1312x960" in said(raw.parse())


def test_tools_streamed(client: Anthropic) -> None:
    with client.messages.stream(model=MODEL, max_tokens=100, messages=user("call tool"), tools=[TOOL]) as stream:
        final = stream.get_final_message()
    assert [block.input for block in final.content if block.type == "tool_use"] == [{"city": "simulated", "days": 1}]


def test_a_count_is_of_the_images_as_they_would_be_sent(client: Anthropic, engine: Engine, gateway: Gateway) -> None:
    asked = user(inline(BIG, "image/jpeg"), "Describe")
    counted = client.messages.count_tokens(model=MODEL, messages=asked)
    answered = client.messages.create(model=MODEL, max_tokens=5, messages=asked)
    assert counted.input_tokens == answered.usage.input_tokens + (answered.usage.cache_read_input_tokens or 0)
    first = engine.requests()[0]
    assert (first["path"], first["images"][0]["width"]) == ("/v1/messages/count_tokens", 1312)
    until(lambda: idle(engine, gateway), "a returned reservation")


async def test_the_async_client(gateway: Gateway) -> None:
    async with AsyncAnthropic(base_url=gateway.url, api_key=ALICE, max_retries=0) as client:
        asked = user(inline(SMALL, "image/png"), "number 7")
        async with client.messages.stream(model=MODEL, max_tokens=100, messages=asked) as stream:
            assert "number 7" in await stream.get_final_text()
        assert "number 7" in said(await client.messages.create(model=MODEL, max_tokens=100, messages=asked))


# --- what goes wrong -------------------------------------------------------------------------------------------------


def kind_of(error: anthropic.APIStatusError) -> str:
    body: Any = error.body
    assert body["type"] == "error"
    return str(body["error"]["type"])


@pytest.mark.parametrize(
    ("block", "status", "kind", "named"),
    [
        (inline(BIG[:400], "image/jpeg"), 400, "invalid_request_error", "messages.0.content.0.source.data"),
        (inline(b"%PDF-1.7 nothing", "image/png"), 400, "invalid_request_error", "messages.0.content.0.source.data"),
        (remote("http://elsewhere.example.test/"), 403, "permission_error", "messages.0.content.0.source"),
        (remote("file:///etc/passwd"), 400, "invalid_request_error", "messages.0.content.0.source"),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, 400, "invalid_request_error", "source"),
    ],
)
def test_a_bad_image_is_an_error_that_names_its_part(
    client: Anthropic, engine: Engine, block: Any, status: int, kind: str, named: str
) -> None:
    with pytest.raises(anthropic.APIStatusError) as raised:
        client.messages.create(model=MODEL, max_tokens=9, messages=user(block))
    assert raised.value.status_code == status
    assert kind_of(raised.value) == kind
    assert named in raised.value.message
    assert engine.requests() == []


def test_what_the_engine_refuses_comes_through(client: Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.create(model=MODEL, max_tokens=9, messages=user("hi"), extra_body={"temperature": -1})
    assert "temperature" in raised.value.message


def test_an_unknown_model_is_not_found(client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as raised:
        client.messages.create(model="nobody/serves-this", max_tokens=9, messages=user("hi"))
    assert kind_of(raised.value) == "not_found_error"


def test_keys_and_policies(gateway: Gateway) -> None:
    with (
        Anthropic(base_url=gateway.url, api_key="nonsense", max_retries=0) as client,
        pytest.raises(anthropic.AuthenticationError) as refused,
    ):
        client.messages.count_tokens(model=MODEL, messages=user("hi"))
    assert kind_of(refused.value) == "authentication_error"
    with Anthropic(base_url=gateway.url, api_key=BOB, max_retries=0) as client:
        small = inline(SMALL, "image/png")
        raw = client.messages.with_raw_response.create(model=MODEL, max_tokens=9, messages=user(small))
        assert gateway.access_line(raw.headers["x-request-id"])["tenant"] == "bob"
        with pytest.raises(anthropic.BadRequestError) as raised:
            client.messages.create(model=MODEL, max_tokens=9, messages=user(small, small))
        assert raised.value.response.headers["x-vlmgw-error"] == "too_many_images"


def test_a_lost_backend_is_not_asked_again(gateway: Gateway, engine: Engine) -> None:
    engine.fault("reset_before_status", times=5)
    with (
        Anthropic(base_url=gateway.url, api_key=ALICE, max_retries=3) as client,
        pytest.raises(anthropic.InternalServerError) as raised,
    ):
        client.messages.create(model=MODEL, max_tokens=9, messages=user("once"))
    assert (raised.value.status_code, kind_of(raised.value)) == (502, "api_error")
    assert len(engine.requests()) == 1


def test_a_stream_that_breaks_raises(client: Anthropic, engine: Engine) -> None:
    engine.fault("reset_mid_stream", after_events=3)
    stream = client.messages.create(model=MODEL, max_tokens=100, messages=user("a story"), stream=True)
    with pytest.raises(anthropic.APIError):
        list(stream)
