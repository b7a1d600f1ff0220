from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from gateway.simulator.responses import chat_body
from tests.simulator import drawn
from tests.simulator.process import MODEL, SimulatorProcess

INPUT: Any = [
    {
        "role": "user",
        "content": [
            {"type": "input_image", "image_url": drawn.data_url(drawn.jpeg(640, 480)), "detail": "auto"},
            {"type": "input_text", "text": "What is it?"},
        ],
    }
]
TOOL: Any = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
}


@pytest.fixture
def sdk(vllm_process: SimulatorProcess, vllm_http: httpx.Client) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{vllm_process.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_the_sdk_gets_an_answer(sdk: openai.OpenAI) -> None:
    answer = sdk.responses.create(model=MODEL, input=INPUT)
    assert "640x480 (300 tokens" in answer.output_text
    assert answer.status == "completed"
    assert answer.usage is not None
    assert answer.usage.input_tokens > 300


def test_the_sdk_reads_a_stream(sdk: openai.OpenAI) -> None:
    whole = sdk.responses.create(model=MODEL, input=INPUT).output_text
    with sdk.responses.stream(model=MODEL, input=INPUT) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == whole
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")


def test_the_sdk_receives_function_calls(sdk: openai.OpenAI) -> None:
    answer = sdk.responses.create(model=MODEL, input="call tool", tools=[TOOL])
    item = answer.output[0]
    assert item.type == "function_call"
    assert (item.name, json.loads(item.arguments)) == ("weather", {"n": 1})
    with sdk.responses.stream(model=MODEL, input="call tool", tools=[TOOL]) as stream:
        final = stream.get_final_response()
    assert final.output[0].type == "function_call"


def test_an_answer_that_was_cut_is_incomplete(sdk: openai.OpenAI) -> None:
    answer = sdk.responses.create(model=MODEL, input="Hi", max_output_tokens=2)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


def test_a_file_id_has_the_engines_error(vllm_http: httpx.Client) -> None:
    part = {"type": "input_image", "file_id": "file-1"}
    answer = vllm_http.post("/v1/responses", json={"model": MODEL, "input": [{"role": "user", "content": [part]}]})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        "multi_modal_data['image'][0] is empty but multi_modal_uuids['image'][0] is missing."
    )


@pytest.mark.parametrize(("body", "status"), [({"previous_response_id": "r", "input": "x"}, 404), ({}, 400)])
def test_what_is_refused(vllm_http: httpx.Client, body: dict[str, Any], status: int) -> None:
    assert vllm_http.post("/v1/responses", json=body).status_code == status


def test_items_of_all_kinds_become_messages() -> None:
    items: Any = [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
        {"type": "message", "role": "user", "content": "next"},
    ]
    messages: Any = chat_body({"instructions": "S", "input": items})["messages"]
    assert [message["role"] for message in messages] == ["system", "assistant", "tool", "user"]
