"""Requests in legs through a gateway process: pictures to encoders, prompts to prefill, on both engines' contracts.

The simulated engines share one loop in a thread of this process, so that seven of them cost no second.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.simulator.server import RunningSimulator, start
from gateway.simulator.settings import EngineKind, SimulatorSettings, TransferRole
from tests.e2e.processes import DEADLINE_S, Gateway, until
from tests.simulator import drawn
from tests.simulator.drawn import data_url

pytestmark = pytest.mark.slow

EPD, PD, SGL = "Qwen3-VL-epd", "Qwen3-VL-pd", "Qwen3-VL-sgl"
FLEET = {
    "encoder-1": (EPD, TransferRole.ENCODER),
    "encoder-2": (EPD, TransferRole.ENCODER),
    "consumer": (EPD, TransferRole.CONSUMER),
    "prefill": (PD, TransferRole.PREFILL),
    "decode": (PD, TransferRole.DECODE),
    "sgl-prefill": (SGL, TransferRole.PREFILL),
    "sgl-decode": (SGL, TransferRole.DECODE),
}
ENCODERS = ("encoder-1", "encoder-2")
PICTURES = [data_url(drawn.png(320 + 32 * number, 320), "image/png") for number in range(6)]


class Fleet:
    """Simulators by name, in a loop of their own."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._folder = folder
        self.engines: dict[str, RunningSimulator] = {}

    def __enter__(self) -> Fleet:
        self._thread.start()
        for name, (model, role) in FLEET.items():
            kind = EngineKind.SGLANG if model == SGL else EngineKind.VLLM
            settings = SimulatorSettings(
                port=0,
                engine=kind,
                served_model_name=model,
                transfer_role=role,
                transfer_dir=str(self._folder),
                speed=0,
                record_api=True,
            )
            self.engines[name] = asyncio.run_coroutine_threadsafe(start(settings), self._loop).result(DEADLINE_S)
        return self

    def __exit__(self, *_: object) -> None:
        for engine in self.engines.values():
            asyncio.run_coroutine_threadsafe(engine.close(), self._loop).result(DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def forget(self) -> None:
        for engine in self.engines.values():
            engine.core.recorder.clear()

    def requests(self, name: str) -> list[dict[str, Any]]:
        """What reached one engine since the last ``forget``."""
        listed: list[Any] = self.engines[name].core.recorder.listing()
        return [entry for entry in listed if entry["path"] == "/v1/chat/completions"]

    def fault(self, name: str, **fault: Any) -> None:
        """What the next request to it meets."""
        self.engines[name].core.faults.order({"faults": [fault]})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("transfer")) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    backends = [
        {"url": engine.url, "name": name, "role": FLEET[name][1].value, "bootstrap_port": 8990}
        for name, engine in fleet.engines.items()
    ]
    config = tmp_path_factory.mktemp("gateway") / "gateway.yaml"
    config.write_text(json.dumps({"backends": backends, "upstream": {"leg_timeout_s": 5}}))
    with Gateway("--config", str(config), "--pool", "1") as running:
        yield running


@pytest.fixture(autouse=True)
def forgotten(fleet: Fleet) -> None:
    fleet.forget()


def body(model: str, *pictures: str, **fields: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": picture}} for picture in pictures]
    content = [*parts, {"type": "text", "text": "What is this?"}]
    return {
        "model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 6, "logprobs": True, **fields
    }  # fmt: skip


def ask(url: str, request: dict[str, Any]) -> httpx.Response:
    response = httpx.post(f"{url}/v1/chat/completions", json=request, timeout=DEADLINE_S, trust_env=False)
    assert response.status_code == httpx.codes.OK, response.text
    return response


def said(response: httpx.Response) -> object:
    return response.json()["choices"], response.json()["usage"]["prompt_tokens"]


def parts_at(fleet: Fleet, name: str) -> list[str]:
    (request,) = fleet.requests(name)
    return [part["type"] for part in request["body"]["messages"][0]["content"]]


def test_pictures_are_encoded_elsewhere_and_the_answer_is_the_same(fleet: Fleet, gateway: Gateway) -> None:
    request = body(EPD, *PICTURES[:3], PICTURES[0])
    expected = ask(fleet.engines["consumer"].url, request)
    fleet.forget()
    response = ask(gateway.url, request)
    assert said(response) == said(expected)
    assert parts_at(fleet, "consumer") == ["image_embeds"] * 4 + ["text"]
    (sent,) = fleet.requests("consumer")
    told = sent["body"]["ec_transfer_params"]
    assert sorted(entry["item_indices"] for entry in told.values()) == [[0, 3], [1], [2]]
    legs = [leg for name in ("encoder-1", "encoder-2") for leg in fleet.requests(name)]
    assert len(legs) == 3  # the same picture twice is encoded once
    assert {image["uuid"] for leg in legs for image in leg["images"]} == told.keys()
    assert "encode" in response.headers["server-timing"]
    line = gateway.access_line(response.headers["x-request-id"])
    assert line["legs"] == {"encoder done": 3}
    assert gateway.metric("legs_total", role="encoder", end="done") == 3


def test_a_picture_keeps_its_encoder(fleet: Fleet, gateway: Gateway) -> None:
    """As long as encoders are about evenly used: the load bound gives pictures of a busier one another home."""
    of: dict[str, list[str]] = {name: [] for name in ENCODERS}
    for picture in PICTURES:
        fleet.forget()
        ask(gateway.url, body(EPD, picture))
        (home,) = [name for name in ENCODERS if fleet.requests(name)]
        of[home].append(picture)
    evenly = min(len(pictures) for pictures in of.values())
    assert evenly > 0
    for _ in range(3):
        for pictures in zip(*of.values(), strict=False):
            for home, picture in zip(of, pictures, strict=True):
                fleet.forget()
                ask(gateway.url, body(EPD, picture))
                assert [name for name in ENCODERS if fleet.requests(name)] == [home]


@pytest.mark.parametrize("fault", [{"kind": "status", "status": 500}, {"kind": "reset_before_status"}])
def test_without_an_encoding_the_pictures_themselves_are_sent(
    fleet: Fleet, gateway: Gateway, fault: dict[str, Any]
) -> None:
    """Never an id that nobody wrote: the consumer would end."""
    request = body(EPD, PICTURES[3], PICTURES[4])
    for name in ENCODERS:
        fleet.fault(name, **fault)
        fleet.fault(name, **fault)
    response = ask(gateway.url, request)
    for name in ENCODERS:
        fleet.engines[name].core.faults.order({"faults": []})
    assert parts_at(fleet, "consumer") == ["image_url", "image_url", "text"]
    assert gateway.access_line(response.headers["x-request-id"])["legs"]["encoder whole"] == 1
    assert not fleet.engines["consumer"].core.engine.is_lost


def test_other_dialects_and_text_go_whole(fleet: Fleet, gateway: Gateway) -> None:
    ask(gateway.url, body(EPD))
    assert fleet.requests("encoder-1") + fleet.requests("encoder-2") == []


def test_clients_cannot_name_encodings_of_others(fleet: Fleet, gateway: Gateway) -> None:
    request = body(EPD, PICTURES[0], ec_transfer_params={"stolen": {}}, kv_transfer_params={"do_remote_prefill": True})
    ask(gateway.url, request)
    (sent,) = fleet.requests("consumer")
    assert "stolen" not in sent["body"]["ec_transfer_params"]
    assert "kv_transfer_params" not in sent["body"]
    request["messages"][0]["content"][0] = {"type": "image_embeds", "image_embeds": {}, "uuid": "stolen"}
    refused = httpx.post(f"{gateway.url}/v1/chat/completions", json=request, timeout=DEADLINE_S, trust_env=False)
    assert refused.status_code == httpx.codes.BAD_REQUEST


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_is_computed_elsewhere(fleet: Fleet, gateway: Gateway, stream: bool) -> None:
    fields: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    request = body(PD, PICTURES[0], max_completion_tokens=6, min_tokens=2, **fields)
    response = ask(gateway.url, request)
    (first,), (second,) = fleet.requests("prefill"), fleet.requests("decode")
    assert (first["body"]["max_tokens"], first["body"]["max_completion_tokens"]) == (1, 1)
    assert first["body"]["stream"] is False
    assert not {"stream_options", "min_tokens"} & first["body"].keys()
    assert second["body"]["max_tokens"] == 6
    assert second["body"]["kv_transfer_params"]["remote_engine_id"] == "simulated"
    assert first["images"][0]["sha256"] == second["images"][0]["sha256"]
    assert gateway.access_line(response.headers["x-request-id"])["legs"] == {"prefill done": 1}
    assert first["output_tokens"] == 1
    if not stream:
        alone = ask(fleet.engines["decode"].url, request)
        assert said(response) == said(alone)


def test_without_a_prefill_the_decoder_computes_it_all(fleet: Fleet, gateway: Gateway) -> None:
    fleet.fault("prefill", kind="reset_before_status")
    response = ask(gateway.url, body(PD))
    (sent,) = fleet.requests("decode")
    assert "kv_transfer_params" not in sent["body"]
    assert gateway.access_line(response.headers["x-request-id"])["legs"] == {"prefill failed": 1, "prefill whole": 1}


@pytest.mark.parametrize("stream", [False, True])
def test_sglang_gets_both_legs_at_once(fleet: Fleet, gateway: Gateway, stream: bool) -> None:
    ask(gateway.url, body(SGL, PICTURES[1], stream=stream))
    (first,), (second,) = fleet.requests("sgl-prefill"), fleet.requests("sgl-decode")
    rooms = {leg["body"]["bootstrap_room"] for leg in (first, second)}
    assert len(rooms) == 1
    assert 0 <= rooms.pop() < 2**63
    assert {leg["body"]["bootstrap_host"] for leg in (first, second)} == {"127.0.0.1"}
    assert {leg["body"]["bootstrap_port"] for leg in (first, second)} == {8990}


def test_a_prefill_that_fails_ends_the_waiting_decoder(fleet: Fleet, gateway: Gateway) -> None:
    fleet.fault("sgl-prefill", kind="status", status=500)
    response = httpx.post(f"{gateway.url}/v1/chat/completions", json=body(SGL), timeout=DEADLINE_S, trust_env=False)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "no_backend")
    until(lambda: fleet.engines["sgl-decode"].core.in_flight == 0, "a decoder that waits no more")
