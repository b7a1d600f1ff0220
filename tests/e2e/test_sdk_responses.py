"""The official OpenAI SDK's Responses, unmodified, against a gateway process with a simulated engine behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import FunctionToolParam, ResponseInputParam

from tests.e2e.processes import Engine, Gateway
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

CAP_PIXELS = 1280 * 32 * 32
# A photograph above the cap, and a drawing that conforms.
BIG = data_url(drawn.jpeg(2000, 1500), "image/jpeg")
# Of one test alone: the engine has seen neither.
KEPT = data_url(drawn.png(480, 416), "image/png")
MAP = data_url(drawn.jpeg(1984, 1504), "image/jpeg")
UNSEEN = data_url(drawn.png(416, 416), "image/png")
SMALL = data_url(drawn.png(448, 448), "image/png")
TOOL: FunctionToolParam = {
    "type": "function",
    "name": "look_up",
    "strict": None,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}


def user(*parts: str) -> ResponseInputParam:
    """One message: addresses become images, the rest is text."""
    content: list[Any] = [
        {"type": "input_image", "image_url": part, "detail": "auto"}
        if part.startswith(("data:", "http", "file:"))
        else {"type": "input_text", "text": part}
        for part in parts
    ]
    return [{"role": "user", "content": content}]


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


@pytest.fixture(autouse=True)
def fresh(engine: Engine) -> None:
    engine.forget()


@pytest.fixture
def client(gateway: Gateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as made:
        yield made


# --- what a client asks for ------------------------------------------------------------------------------------------


def test_a_string_is_a_whole_input(client: OpenAI) -> None:
    answer = client.responses.create(model=MODEL, input="Good morning", instructions="Be brief", max_output_tokens=200)
    assert "Good morning" in answer.output_text


def test_images_are_shrunk_or_passed_and_counted_as_the_engine_counts(client: OpenAI, engine: Engine) -> None:
    raw = client.responses.with_raw_response.create(model=MODEL, input=user(BIG, "and", SMALL, "differ?"))
    assert "2 images: 1312x960" in raw.parse().output_text
    assert raw.headers["x-vlmgw-image-tokens"] == str(1230 + 196)
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0"
    (reached,) = engine.requests()
    assert reached["image_tokens"] == 1230 + 196
    first = reached["body"]["input"][0]["content"][0]
    assert (first["type"], first["detail"], type(first["image_url"])) == ("input_image", "auto", str)


def test_of_a_body_that_conforms_only_the_picture_gets_an_id(client: OpenAI, engine: Engine, gateway: Gateway) -> None:
    raw = client.responses.with_raw_response.create(model=MODEL, input=user(UNSEEN, "what?"))
    line = gateway.access_line(raw.headers["x-request-id"])
    (reached,) = engine.requests()
    assert line["forwarded_bytes"] == reached["body_bytes"]
    assert line["forwarded_bytes"] - line["request_bytes"] == len(',"uuid":""') + len(reached["images"][0]["uuid"])


def test_streaming_events_and_usage(client: OpenAI, gateway: Gateway) -> None:
    with client.responses.stream(model=MODEL, input=user(BIG, "Describe")) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
        request_id = stream._response.headers["x-request-id"]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "1312x960" in final.output_text
    assert final.usage is not None
    counted = gateway.access_line(request_id)["usage"]
    assert (counted["prompt"], counted["completion"]) == (final.usage.input_tokens, final.usage.output_tokens)


def test_tools_answered_with_an_image(client: OpenAI) -> None:
    asked = client.responses.create(model=MODEL, input=user("call tool please"), tools=[TOOL])
    (call,) = [item for item in asked.output if item.type == "function_call"]
    assert json.loads(call.arguments) == {"city": "simulated", "days": 1}
    output = [{"type": "input_image", "image_url": MAP}, {"type": "input_text", "text": "a map"}]
    told: Any = [
        *user(KEPT, "call tool please"),
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": output},
    ]
    raw = client.responses.with_raw_response.create(model=MODEL, input=told)
    assert raw.headers["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0"


def test_tools_streamed(client: OpenAI) -> None:
    with client.responses.stream(model=MODEL, input=user("call tool"), tools=[TOOL]) as stream:
        final = stream.get_final_response()
    calls = [item for item in final.output if item.type == "function_call"]
    assert [json.loads(call.arguments) for call in calls] == [{"city": "simulated", "days": 1}]


async def test_the_async_client(gateway: Gateway) -> None:
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as client:
        async with client.responses.stream(model=MODEL, input=user(SMALL, "number 7")) as stream:
            assert "number 7" in (await stream.get_final_response()).output_text
        assert "number 7" in (await client.responses.create(model=MODEL, input=user(SMALL, "number 7"))).output_text


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (data_url(drawn.jpeg(64, 64)[:400], "image/jpeg"), "image_undecodable"),
        ("http://127.0.0.1:9/a.png", "source_blocked"),
        ("file:///etc/passwd", "invalid_request"),
    ],
)
def test_a_bad_image_is_an_error_that_names_its_part(client: OpenAI, engine: Engine, source: str, code: str) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        client.responses.create(model=MODEL, input=user("see", source))
    assert raised.value.code == code
    assert raised.value.param == "input.0.content.1.image_url"
    assert engine.requests() == []


@pytest.mark.parametrize(
    "body",
    [
        {"background": True},
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1", "detail": "auto"}]}]},
    ],
)
def test_what_cannot_be_answered_for_is_refused(client: OpenAI, engine: Engine, body: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(**{"model": MODEL, "input": "hi", **body})
    assert raised.value.code == "invalid_request"
    assert engine.requests() == []


def test_what_the_engine_refuses_comes_through(client: OpenAI, engine: Engine) -> None:
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model=MODEL, input="hi", previous_response_id="resp_elsewhere")
    assert len(engine.requests()) == 1


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        client.responses.create(model="nobody/serves-this", input="hi")
    assert raised.value.code == "model_not_found"


def test_a_stream_that_breaks_raises(client: OpenAI, engine: Engine) -> None:
    engine.fault("reset_mid_stream", after_events=3)
    stream = client.responses.create(model=MODEL, input="a story", stream=True)
    with pytest.raises(openai.APIError):
        list(stream)
