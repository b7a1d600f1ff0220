"""The stand-in for a pooling server: shapes, counts, refusals, and that other inputs give other numbers."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.simulator.pooling import WIDTH, vector
from gateway.simulator.prompt import Prompt
from gateway.simulator.tokens import encode
from tests.simulator import drawn
from tests.simulator.conftest import Starter
from tests.simulator.drawn import data_url
from tests.simulator.process import MODEL, image_part

PICTURE = image_part(data_url(drawn.png(64, 64), "image/png"))
USER = {"role": "user", "content": [PICTURE]}


def test_equal_prompts_have_equal_vectors() -> None:
    one, same, other = (vector(Prompt(tuple(encode(text)))) for text in ("a b", "a b", "a c"))
    assert one == same != other
    assert len(one) == WIDTH


async def test_embeddings_of_texts_ids_and_conversations(simulator: Starter) -> None:
    client, running = await simulator(pooling=True)
    texts = (await client.post("/v1/embeddings", json={"model": MODEL, "input": ["a", "b", "a"]})).json()
    vectors = [entry["embedding"] for entry in texts["data"]]
    assert vectors[0] == vectors[2] != vectors[1]
    assert texts["usage"]["prompt_tokens"] == 3
    assert len((await client.post("/v1/embeddings", json={"input": [1, 2]})).json()["data"]) == 1
    for body in ({"messages": [USER]}, {"input": [USER]}, {"messages": [[USER], [USER]]}):
        seen = (await client.post("/v1/embeddings", json=body)).json()
        assert seen["usage"]["prompt_tokens"] > 64
        last: Any = running.core.recorder.listing()
        assert last[-1]["image_tokens"] >= 64


@pytest.mark.parametrize(
    "body", [{"queries": "a", "documents": ["a", "b"]}, {"text_1": "a", "text_2": ["a", "b"]},
             {"data_1": ["a", "a"], "data_2": ["a", "b"]}, {"queries": "a", "items": ["a", {"content": [PICTURE]}]}]
)  # fmt: skip
async def test_scores_tell_what_is_alike(simulator: Starter, body: dict[str, Any]) -> None:
    client, _ = await simulator(pooling=True)
    first, second = [each["score"] for each in (await client.post("/score", json=body)).json()["data"]]
    assert first == 1.0 > second


async def test_the_best_document_comes_first(simulator: Starter) -> None:
    client, _ = await simulator(pooling=True)
    asked = {"query": "a", "documents": ["b", {"content": [PICTURE]}, "a"]}
    answer = (await client.post("/v1/rerank", json=asked)).json()
    assert answer["results"][0] == {"index": 2, "document": {"text": "a"}, "relevance_score": 1.0}
    assert answer["usage"]["total_tokens"] > 64


async def test_classes_and_pooled_vectors(simulator: Starter) -> None:
    client, _ = await simulator(pooling=True)
    (found,) = (await client.post("/classify", json={"input": "a"})).json()["data"]
    assert sum(found["probs"]) == pytest.approx(1)
    assert len((await client.post("/pooling", json={"input": "a"})).json()["data"][0]["data"]) == WIDTH


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/embeddings", {}, 400),
        ("/v1/embeddings", {"input": "a", "model": "other"}, 404),
        ("/v1/embeddings", {"input": "a", "normalize": True}, 400),
        ("/score", {"queries": "a"}, 400),
        ("/score", {"queries": ["a", "b"], "documents": ["a"]}, 400),
        ("/rerank", {"query": "a"}, 400),
        ("/v1/chat/completions", {"messages": []}, 404),
        ("/v1/completions", {"prompt": "a"}, 404),
    ],
)
async def test_refusals(simulator: Starter, path: str, body: dict[str, Any], status: int) -> None:
    client, _ = await simulator(pooling=True)
    assert (await client.post(path, json=body)).status_code == status


async def test_a_server_that_generates_has_none_of_these_paths(simulator: Starter) -> None:
    client, _ = await simulator()
    assert (await client.post("/v1/embeddings", json={"input": "a"})).status_code == 404
    heard = await client.post("/v1/audio/transcriptions", data={"model": MODEL}, files={"file": ("a.wav", b"RIFF")})
    assert heard.json()["text"] == "4 bytes"
    other = await client.post("/v1/audio/transcriptions", data={"model": "x"}, files={"file": ("a.wav", b"RIFF")})
    assert other.status_code == 404
    assert (await client.post("/v1/audio/transcriptions", data={"model": MODEL})).status_code == 400
    assert (await client.post("/detokenize", json={"tokens": [1, 2]})).json() == {"prompt": "1 2"}
    assert (await client.post("/detokenize", json={"tokens": ["a"]})).status_code == 400
