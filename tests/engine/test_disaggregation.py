"""vLLM's encoder and consumer with ECExampleConnector behind the gateway: the same answers as without an encoder.

A consumer whose pictures were encoded elsewhere computes what it computes from the pictures themselves; and it lives
on when the encoder is gone, because it is then given the pictures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.engine.chat import Answer, ask, body
from tests.engine.gateway_process import GatewayProcess
from tests.engine.pictures import drawn, jpeg, png
from tests.engine.vllm import VllmServer, wait_until

MODEL = "tiny-qwen3vl"
SMALLER = {"tasks": {"chat": {}, "classify": {"max_pixels": 256 * 256}}}
# The same kernels over the same embeddings: what differs is the order of additions where blocks were cached.
SAME = 1e-3


@dataclass(frozen=True, slots=True)
class Division:
    """The engines, a gateway that knows both, and one that knows the consumer only."""

    encoder: VllmServer
    consumer: VllmServer
    divided: GatewayProcess
    whole: GatewayProcess


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Division]:
    engine_dir: Path = request.config.getoption("--engine-dir")
    folder = tmp_path_factory.mktemp("encodings")
    with ExitStack() as stack:
        engines = []
        for role in ("ec_producer", "ec_consumer"):
            where = {"shared_storage_path": str(folder)}
            transfer = {"ec_connector": "ECExampleConnector", "ec_role": role, "ec_connector_extra_config": where}
            server = VllmServer(engine_dir, "qwen3vl", MODEL, f"--ec-transfer-config={json.dumps(transfer)}")
            stack.callback(server.end)
            server.begin()
            engines.append(server)
        for server in engines:
            server.wait_healthy()
        encoder, consumer = engines
        both = [
            {"url": encoder.url, "name": "encoder", "role": "encoder"},
            {"url": consumer.url, "name": "consumer", "role": "consumer"},
        ]
        gateways = [
            stack.enter_context(GatewayProcess(tmp_path_factory.mktemp(name), backends, SMALLER, {}, models=1))
            for name, backends in (("divided", both), ("whole", [{"url": consumer.url, "name": "consumer"}]))
        ]
        yield Division(encoder, consumer, *gateways)
        encoder.ask_to_end()
        consumer.ask_to_end()


def question(*files: bytes, **fields: Any) -> dict[str, Any]:
    return body(MODEL, *files, **{"logprobs": True, "top_logprobs": 5, "max_tokens": 8, **fields})


def legs_of(site: Division, answer: Answer) -> dict[str, int]:
    """What the access line of the request says of its legs."""
    wanted = answer.headers["x-request-id"]

    def told() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in site.divided.said().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("request_id") == wanted]

    wait_until(lambda: bool(told()), 20, "the access line")
    (line,) = told()
    legs: dict[str, int] = line.get("legs", {})
    return legs


def assert_same(one: Answer, other: Answer) -> None:
    assert one.answer[0] == other.answer[0]
    assert one.answer[1] == pytest.approx(other.answer[1], abs=SAME)
    assert one.prompt_tokens == other.prompt_tokens
    assert one.image_tokens == other.image_tokens


@pytest.mark.parametrize("encode", [jpeg, png])
def test_a_picture_encoded_elsewhere_gets_the_same_answer(site: Division, encode: Any) -> None:
    request = question(encode(drawn(640, 480, seed=21)))
    before = site.encoder.metric("vllm:mm_cache_queries_total")
    divided = ask(site.divided.url, request)
    assert legs_of(site, divided) == {"encoder done": 1}
    assert site.encoder.metric("vllm:mm_cache_queries_total") == before + 1
    assert_same(divided, ask(site.consumer.url, request))
    assert_same(divided, ask(site.whole.url, request))
    other = ask(site.divided.url, question(encode(drawn(640, 480, seed=200))))
    assert other.answer[1] != pytest.approx(divided.answer[1], abs=10 * SAME)


def test_several_pictures_one_of_them_twice_over_two_turns(site: Division) -> None:
    first, second = jpeg(drawn(512, 384, seed=31)), jpeg(drawn(384, 512, seed=32))
    request = question(first, second, first)
    divided = ask(site.divided.url, request)
    assert legs_of(site, divided) == {"encoder done": 2}
    assert_same(divided, ask(site.consumer.url, request))
    request["messages"] += [{"role": "assistant", "content": "Noise."}, {"role": "user", "content": "And now?"}]
    again = ask(site.divided.url, request)
    assert legs_of(site, again) == {"encoder done": 2}
    assert_same(again, ask(site.consumer.url, request))


def test_a_shrunk_picture_gets_the_answer_of_the_shrunk_picture(site: Division) -> None:
    request = question(jpeg(drawn(900, 700, seed=41)))
    divided, whole = (ask(gateway.url, request, task="classify") for gateway in (site.divided, site.whole))
    assert divided.images == whole.images == "passed=0, shrunk=1, recoded=0"
    assert legs_of(site, divided) == {"encoder done": 1}
    assert_same(divided, whole)


def test_a_text_needs_no_encoder(site: Division) -> None:
    answer = ask(site.divided.url, question())
    assert legs_of(site, answer) == {}


def test_without_its_encoder_the_consumer_gets_the_pictures(site: Division) -> None:
    """The last test: the encoder does not come back."""
    site.encoder.end()
    request = question(jpeg(drawn(640, 480, seed=51)))
    divided = ask(site.divided.url, request)
    assert legs_of(site, divided).get("encoder whole") == 1
    assert_same(divided, ask(site.consumer.url, request))
