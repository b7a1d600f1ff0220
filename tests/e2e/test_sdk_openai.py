"""The official OpenAI SDK, unmodified, against a gateway process with a simulated engine behind it.

The client changes its base URL and nothing else; everything that its users rely on must go on working.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel

from gateway.api.auth import hash_key
from tests.e2e.processes import Engine, Gateway, until, write_policies
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

CAP_PIXELS = 1280 * 32 * 32
ALICE, BOB = "vgw-alice-0123456789", "vgw-bob-0123456789"
# A photograph above the cap, and a drawing that conforms.
BIG = data_url(drawn.jpeg(2000, 1500), "image/jpeg")
# Of one test alone, so that it knows which of them the engine has seen.
KEPT = data_url(drawn.png(480, 416), "image/png")
MAP = data_url(drawn.jpeg(1984, 1504), "image/jpeg")
SMALL = data_url(drawn.png(448, 448), "image/png")
TOOL: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}


def user(*parts: str) -> list[ChatCompletionMessageParam]:
    """One user message: data URLs become images, the rest is text."""
    content: list[ChatCompletionContentPartParam] = []
    for part in parts:
        if part.startswith("data:"):
            content.append({"type": "image_url", "image_url": {"url": part}})
        else:
            content.append({"type": "text", "text": part})
    return [{"role": "user", "content": content}]


# An answer so long that nobody waits for its end: what stops it is the test.
ENDLESS: dict[str, Any] = {"max_tokens": 8000, "extra_body": {"ignore_eos": True}}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(
        "--max-pixels", str(CAP_PIXELS), "--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(engine: Engine) -> Iterator[Gateway]:
    with Gateway("--backend", engine.url, "--max-pixels", str(CAP_PIXELS), "--pool", "1") as running:
        yield running


@pytest.fixture(scope="module")
def tenants(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with keys: alice may have 9,000 KV tokens in flight and does not wait, bob may have one image."""
    policies = write_policies(
        tmp_path_factory.mktemp("policies"),
        alice=f"tenant: alice\nkeys: ['{hash_key(ALICE)}']\nkv_tokens_in_flight: 9000\nqueue_timeout_s: 0\n",
        bob=f"tenant: bob\nkeys: ['{hash_key(BOB)}']\nrules:\n  max_images: 1\n",
    )
    with Gateway("--backend", engine.url, "--policies", str(policies), "--pool", "1") as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(engine: Engine) -> None:
    engine.forget()


@pytest.fixture
def client(gateway: Gateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as made:
        yield made


def idle(engine: Engine, gateway: Gateway) -> bool:
    """Nothing runs in the engine and nothing is reserved in the gateway."""
    return engine.state()["in_flight"] == 0 and gateway.metric("budget_reserved_tokens") == 0


def chat_requests(engine: Engine) -> list[dict[str, Any]]:
    return [request for request in engine.requests() if request["path"] == "/v1/chat/completions"]


# --- what a client asks for ------------------------------------------------------------------------------------------


def test_text(client: OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=user("Good morning"))
    assert "You wrote: Good morning" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


def test_several_images_are_shrunk_and_counted_as_the_engine_counts(client: OpenAI, engine: Engine) -> None:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=user(BIG, "and", SMALL, "differ?"))
    answer = raw.parse()
    assert "2 images: 1312x960" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    details = answer.usage.prompt_tokens_details
    assert details is not None
    assert details.model_extra is not None
    counted = details.model_extra["multimodal_tokens"]["image"]
    assert raw.headers["x-vlmgw-image-tokens"] == str(counted) == str(1230 + 196)
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0"
    assert raw.headers["x-vlmgw-geometry"] == "2000x1500 1312x960 scale=0.656x0.64 offset=0x0, 448x448"
    assert raw.headers["x-vlmgw-backend"] == engine.name
    assert "prepare;dur=" in raw.headers["server-timing"]


def test_request_id_of_the_client_is_kept(client: OpenAI, gateway: Gateway, engine: Engine) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=user("hello"), extra_headers={"x-request-id": "mine-42"}
    )
    assert raw.headers["x-request-id"] == "mine-42"
    assert raw.parse()._request_id == "mine-42"
    assert ("x-request-id", "mine-42") in {(name.lower(), value) for name, value in chat_requests(engine)[0]["headers"]}
    assert gateway.access_line("mine-42")["status"] == 200


def test_streaming_with_usage(client: OpenAI) -> None:
    stream = client.chat.completions.create(
        model=MODEL, messages=user(BIG, "Describe"), stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "1312x960" in said
    assert "You wrote: Describe" in said
    assert [chunk for chunk in chunks if chunk.choices][-1].choices[0].finish_reason == "stop"
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens > 1


def test_streaming_without_usage_brings_none(client: OpenAI) -> None:
    chunks = list(client.chat.completions.create(model=MODEL, messages=user("hi"), stream=True))
    assert all(chunk.usage is None for chunk in chunks)


def test_tools_answered_and_answered_back(client: OpenAI) -> None:
    asked = client.chat.completions.create(model=MODEL, messages=user(KEPT, "call tool please"), tools=[TOOL])
    message = asked.choices[0].message
    assert asked.choices[0].finish_reason == "tool_calls"
    assert message.tool_calls is not None
    call = message.tool_calls[0]
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"city": "simulated", "days": 1}
    # A tool result that holds a picture: images are found in any role.
    told: list[Any] = [
        *user(KEPT, "call tool please"),
        message.model_dump(exclude_none=True),
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": [{"type": "image_url", "image_url": {"url": MAP}}, {"type": "text", "text": "a map"}],
        },
    ]
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=told)
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0, by_id=1"


def test_tools_streamed(client: OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=user("call tool"), tools=[TOOL]) as stream:
        final = stream.get_final_completion()
    calls = final.choices[0].message.tool_calls
    assert calls is not None
    assert json.loads(calls[0].function.arguments) == {"city": "simulated", "days": 1}


def test_structured_output(client: OpenAI) -> None:
    class Weather(BaseModel):
        city: str
        days: int

    answer = client.chat.completions.parse(model=MODEL, messages=user(SMALL, "which?"), response_format=Weather)
    assert answer.choices[0].message.parsed == Weather(city="simulated", days=1)


def test_json_mode(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL, messages=user("as JSON"), response_format={"type": "json_object"}, max_tokens=200
    )
    assert "answer" in json.loads(answer.choices[0].message.content or "")


def test_models_are_listed(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]


async def test_async_client_streams_and_answers_at_once(gateway: Gateway) -> None:
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as client:

        async def streamed(number: int) -> str:
            messages = user(BIG, f"number {number}")
            said = ""
            async for chunk in await client.chat.completions.create(model=MODEL, messages=messages, stream=True):
                said += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            return said

        async def whole(number: int) -> str:
            answer = await client.chat.completions.create(model=MODEL, messages=user(SMALL, f"number {number}"))
            return answer.choices[0].message.content or ""

        said = await asyncio.gather(*(streamed(n) for n in range(4)), *(whole(n) for n in range(4, 8)))
    assert all(f"number {n}" in text for n, text in enumerate(said))


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_bad_image_is_a_bad_request_that_names_its_part(client: OpenAI, engine: Engine) -> None:
    broken = data_url(drawn.jpeg(64, 64)[:400], "image/jpeg")
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model=MODEL, messages=user(SMALL, broken))
    assert raised.value.code == "image_undecodable"
    assert (raised.value.param or "").startswith("messages.0.content.1.image_url")
    assert raised.value.type == "invalid_request_error"
    assert raised.value.request_id
    assert chat_requests(engine) == []


def test_an_unknown_format_is_unsupported(client: OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        client.chat.completions.create(model=MODEL, messages=user(data_url(b"%PDF-1.7 nothing", "image/png")))
    assert raised.value.status_code == 415
    assert raised.value.code == "image_format_unsupported"


def test_what_the_engine_refuses_comes_through(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model=MODEL, messages=user("hi"), temperature=-1)
    assert "temperature" in raised.value.message


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="nobody/serves-this", messages=user("hi"))
    assert raised.value.code == "model_not_found"


def test_an_unknown_path_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.files.list()


def test_keys(tenants: Gateway, engine: Engine) -> None:
    for key in ("nonsense", ALICE[:-1]):
        with (
            OpenAI(base_url=f"{tenants.url}/v1", api_key=key, max_retries=0) as client,
            pytest.raises(openai.AuthenticationError),
        ):
            client.chat.completions.create(model=MODEL, messages=user("hi"))
    with OpenAI(base_url=f"{tenants.url}/v1", api_key=BOB, max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=user("hi"))
        assert tenants.access_line(raw.headers["x-request-id"])["tenant"] == "bob"
        with pytest.raises(openai.BadRequestError) as raised:
            client.chat.completions.create(model=MODEL, messages=user(SMALL, SMALL))
        assert raised.value.code == "too_many_images"
    (reached,) = chat_requests(engine)
    assert BOB not in json.dumps(reached)


def test_a_spent_budget_is_a_rate_limit_and_comes_back(tenants: Gateway, engine: Engine) -> None:
    with OpenAI(base_url=f"{tenants.url}/v1", api_key=ALICE, max_retries=0) as client:
        stream = client.chat.completions.create(model=MODEL, messages=user("hold"), stream=True, **ENDLESS)
        next(iter(stream))
        with pytest.raises(openai.RateLimitError) as raised:
            client.chat.completions.create(model=MODEL, messages=user("hi"), max_tokens=2000)
        assert raised.value.code == "kv_budget_exhausted"
        assert int(raised.value.response.headers["retry-after"]) >= 1
        assert int(raised.value.response.headers["retry-after-ms"]) >= 1
        stream.close()
        until(lambda: idle(engine, tenants), "a budget that is whole again")
        client.chat.completions.create(model=MODEL, messages=user("hi"), max_tokens=2000)


def test_a_lost_backend_is_one_502_that_the_sdk_does_not_repeat(gateway: Gateway, engine: Engine) -> None:
    engine.fault("reset_before_status", times=5)
    with (
        OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=3) as client,
        pytest.raises(openai.InternalServerError) as raised,
    ):
        client.chat.completions.create(model=MODEL, messages=user("once"))
    assert raised.value.status_code == 502
    assert raised.value.code == "backend_lost"
    assert raised.value.response.headers["x-should-retry"] == "false"
    assert len(chat_requests(engine)) == 1


def test_the_sdk_repeats_what_the_engine_says_it_may(gateway: Gateway, engine: Engine) -> None:
    engine.fault("status", status=503)
    with OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=2) as client:
        client.chat.completions.create(model=MODEL, messages=user("twice"))
    assert [request["status"] for request in chat_requests(engine)] == [503, 200]


def test_no_backend_is_a_server_error_that_says_when_to_come_back() -> None:
    with Engine() as lonely, Gateway("--backend", lonely.url, "--pool", "1") as gateway:
        lonely.kill()
        with (
            OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as client,
            pytest.raises(openai.InternalServerError) as raised,
        ):
            client.chat.completions.create(model=MODEL, messages=user("anybody?"))
        assert raised.value.status_code in {502, 503}
        assert raised.value.code in {"backend_unreachable", "no_backend"}


def test_a_stream_that_breaks_raises(client: OpenAI, engine: Engine) -> None:
    engine.fault("reset_mid_stream", after_events=3)
    stream = client.chat.completions.create(model=MODEL, messages=user("a story"), stream=True)
    with pytest.raises(openai.APIError):
        list(stream)


# --- clients that leave ----------------------------------------------------------------------------------------------


def test_a_client_that_times_out_takes_its_request_along(client: OpenAI, gateway: Gateway, engine: Engine) -> None:
    engine.fault("hang_before_status")
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.5).chat.completions.create(model=MODEL, messages=user("hello?"))
    engine.forget()  # on a starved machine it left before the engine heard of it
    until(lambda: idle(engine, gateway), "an idle engine and a returned reservation")


def test_a_stream_closed_half_way_is_cancelled_in_the_engine(client: OpenAI, gateway: Gateway, engine: Engine) -> None:
    before = engine.state()["aborted"]
    stream = client.chat.completions.create(model=MODEL, messages=user("a novel"), stream=True, **ENDLESS)
    next(iter(stream))
    assert engine.state()["in_flight"] == 1
    assert gateway.metric("budget_reserved_tokens", tenant="default") > 8000
    stream.close()
    until(lambda: idle(engine, gateway), "an idle engine and a returned reservation")
    assert engine.state()["aborted"] == before + 1


async def test_a_cancelled_task_is_cancelled_in_the_engine(gateway: Gateway, engine: Engine) -> None:
    before = engine.state()["aborted"]
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as client:
        waiting = asyncio.create_task(client.chat.completions.create(model=MODEL, messages=user("wait"), **ENDLESS))
        await asyncio.to_thread(until, lambda: engine.state()["in_flight"] == 1, "the request in the engine")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await asyncio.to_thread(until, lambda: idle(engine, gateway), "an idle engine and a returned reservation")
    assert engine.state()["aborted"] == before + 1


def test_an_engine_that_hangs_is_a_504_that_is_not_repeated(engine: Engine) -> None:
    impatient = {"VLMGW_UPSTREAM_RESPONSE_TIMEOUT_S": "1"}
    with Gateway("--backend", engine.url, "--pool", "1", environment=impatient) as gateway:
        engine.fault("hang_before_status", times=5)
        with (
            OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=3) as client,
            pytest.raises(openai.InternalServerError) as raised,
        ):
            client.chat.completions.create(model=MODEL, messages=user("hello?"))
        assert raised.value.status_code == 504
        assert raised.value.code == "backend_timeout"
        until(lambda: idle(engine, gateway), "an idle engine and a returned reservation")
    assert len(chat_requests(engine)) == 1
