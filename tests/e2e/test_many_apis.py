"""Two engines of two kinds behind one gateway: each API goes where its model and its engine are, images prepared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from tests.e2e.processes import Engine, Gateway
from tests.simulator import drawn
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL

pytestmark = pytest.mark.slow

EMBEDDER = "Qwen/Qwen3-VL-Embedding-2B"
CAP_PIXELS = 1280 * 32 * 32
BIG = data_url(drawn.jpeg(2000, 1500), "image/jpeg")
FAST = ("--encode-ms-per-patch", "0", "--prefill-tokens-per-s", "1e9", "--max-pixels", str(CAP_PIXELS))


@pytest.fixture(scope="module")
def vllm() -> Iterator[Engine]:
    with Engine("--pooling", "--served-model-name", EMBEDDER, *FAST) as running:
        yield running


@pytest.fixture(scope="module")
def sglang() -> Iterator[Engine]:
    with Engine("--engine", "sglang", *FAST) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(vllm: Engine, sglang: Engine) -> Iterator[Gateway]:
    backends = ("--backend", vllm.url, "--backend", sglang.url)
    with Gateway(*backends, "--max-pixels", str(CAP_PIXELS), "--pool", "1") as running:
        yield running


@pytest.fixture
def http(gateway: Gateway, vllm: Engine, sglang: Engine) -> Iterator[httpx.Client]:
    vllm.forget()
    sglang.forget()
    with httpx.Client(base_url=gateway.url, timeout=30) as client:
        yield client


def image(url: str = BIG) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def test_the_official_client_embeds_texts(gateway: Gateway) -> None:
    with OpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0) as client:
        made = client.embeddings.create(model=EMBEDDER, input=["a", "b"], encoding_format="float")
        assert [len(each.embedding) for each in made.data] == [8, 8]
        assert {model.id for model in client.models.list()} == {EMBEDDER, MODEL}
        assert client.models.retrieve(MODEL).id == MODEL
        with pytest.raises(openai.NotFoundError) as caught:
            client.embeddings.create(model="nobody", input="a", encoding_format="float")
        assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"messages": [user(image())]}),
        ("/v1/embeddings", {"input": [[user(image())]]}),
        ("/pooling", {"messages": [user(image())]}),
        ("/classify", {"messages": [user(image())]}),
        ("/v1/score", {"queries": "a", "documents": [{"content": [image()]}]}),
        ("/rerank", {"query": {"content": [image()]}, "documents": ["a"]}),
        ("/tokenize", {"messages": [user(image())]}),
    ],
)
def test_images_reach_the_engine_shrunk(http: httpx.Client, vllm: Engine, path: str, body: dict[str, Any]) -> None:
    answer = http.post(path, json={"model": EMBEDDER, **body})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-vlmgw-images"] == "passed=0, shrunk=1, recoded=0"
    assert int(answer.headers["x-vlmgw-image-tokens"]) <= 1280
    told = http.post(path, json={"model": EMBEDDER, **json.loads(json.dumps(body).replace(BIG, "data:,nothing"))})
    assert told.status_code == 400
    assert told.json()["error"]["param"].endswith("image_url")


@pytest.mark.parametrize("shape", [BIG, [BIG], [{"url": BIG}], BIG.partition(",")[2]])
def test_generate_takes_every_shape_and_only_sglang_has_it(http: httpx.Client, shape: Any) -> None:
    parameters = {"max_new_tokens": 4}
    answer = http.post("/generate", json={"text": "What is it?", "image_data": shape, "sampling_params": parameters})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-vlmgw-images"] == "passed=0, shrunk=1, recoded=0"
    assert answer.json()["meta_info"]["prompt_tokens"] <= 1300


def test_generate_streams_and_refuses_in_its_own_form(http: httpx.Client) -> None:
    with http.stream("POST", "/generate", json={"text": "a", "stream": True}) as answer:
        assert [line for line in answer.iter_lines() if line][-1] == "data: [DONE]"
    refused = http.post("/generate", json={"text": "a", "image_data": {"format": "processor_output"}})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("image_data: ")


def test_an_api_that_no_engine_of_the_model_has_is_not_offered(http: httpx.Client) -> None:
    answer = http.post("/pooling", json={"model": MODEL, "input": "a"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "dialect_not_supported")


def test_counts_are_ours_where_no_engine_counts(http: httpx.Client) -> None:
    asked = {"model": EMBEDDER, "messages": [user({"type": "text", "text": "hello there"})]}
    answer = http.post("/v1/messages/count_tokens", json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-vlmgw-counted-by"].startswith("gateway; ")
    assert answer.json()["input_tokens"] > 0


def test_a_prepared_body_is_what_an_engine_would_have_got(http: httpx.Client, sglang: Engine) -> None:
    asked = {"model": MODEL, "messages": [user(image())], "max_tokens": 4}
    prepared = http.post("/v1/prepare", json=asked)
    assert prepared.status_code == 200, prepared.text
    told = prepared.json()
    assert told["backend"]["engine"] == "sglang"
    sent = httpx.post(f"{sglang.url}/v1/chat/completions", json=told["body"], timeout=30)
    details = sent.json()["usage"]["prompt_tokens_details"]
    assert details["image_tokens"] == told["estimate"]["image_tokens"] == told["images"][0]["tokens"]
    assert http.post("/v1/prepare?path=/v1/unknown", json=asked).status_code == 400
