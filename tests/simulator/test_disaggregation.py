"""Engines that share a request: what each part answers, and the end of a consumer that was told of nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.simulator.settings import EngineKind, SettingsError, SimulatorSettings, TransferRole
from tests.simulator import drawn
from tests.simulator.conftest import Starter
from tests.simulator.drawn import data_url
from tests.simulator.process import chat, image_part

PICTURE = data_url(drawn.png(448, 320), "image/png")
CHAT = "/v1/chat/completions"
ID = "ab" * 32


def embeds(identifier: str, grid: list[int]) -> dict[str, object]:
    return {"type": "image_embeds", "image_embeds": {"image_grid_thw": grid}, "uuid": identifier}


async def test_an_encoder_names_what_it_wrote_and_a_consumer_sees_it(simulator: Starter, tmp_path: Path) -> None:
    shared: dict[str, Any] = {"transfer_dir": str(tmp_path)}
    encoder, _ = await simulator(transfer_role=TransferRole.ENCODER, **shared)
    consumer, running = await simulator(transfer_role=TransferRole.CONSUMER, **shared)
    encoded = (await encoder.post(CHAT, json=chat(image_part(PICTURE, uuid=ID), max_tokens=1))).json()
    assert encoded["choices"][0]["message"]["content"] == ""
    assert encoded["choices"][0]["finish_reason"] == "stop"
    assert encoded["usage"]["completion_tokens"] == 0
    told = encoded["ec_transfer_params"]
    assert told == {ID: {"item_indices": [0], "metadata": {"image_grid_thw": [1, 20, 28]}}}
    fields: dict[str, Any] = {"logprobs": True, "max_tokens": 5}
    whole = (await consumer.post(CHAT, json=chat(image_part(PICTURE), "What?", **fields))).json()
    divided = chat(embeds(ID, [1, 20, 28]), "What?", ec_transfer_params=told, **fields)
    answered = (await consumer.post(CHAT, json=divided)).json()
    assert answered["choices"] == whole["choices"]
    mixed = await consumer.post(CHAT, json=chat(embeds(ID, [1, 20, 28]), image_part(PICTURE)))
    assert mixed.status_code == 400
    assert "Mixing raw image" in mixed.text
    lost = await consumer.post(CHAT, json=chat(embeds("cd" * 32, [1, 20, 28]), "What?"))
    assert lost.status_code == 500
    assert running.core.engine.is_lost


async def test_a_plain_engine_takes_no_embeddings(simulator: Starter) -> None:
    client, running = await simulator()
    assert (await client.post(CHAT, json=chat(embeds(ID, [1, 2, 2])))).status_code == 400
    assert not running.core.engine.is_lost


async def test_vllm_s_blocks_are_of_the_same_prompt(simulator: Starter, tmp_path: Path) -> None:
    shared: dict[str, Any] = {"transfer_dir": str(tmp_path)}
    prefill, _ = await simulator(transfer_role=TransferRole.PREFILL, **shared)
    decode, _ = await simulator(transfer_role=TransferRole.DECODE, **shared)
    asked = chat("One two three " * 20, max_tokens=1, kv_transfer_params={"do_remote_decode": True})
    told = (await prefill.post(CHAT, json=asked)).json()["kv_transfer_params"]
    assert told["do_remote_prefill"] is True
    assert told["remote_block_ids"]
    same = chat("One two three " * 20, kv_transfer_params=told)
    assert (await decode.post(CHAT, json=same)).status_code == 200
    other = chat("One", kv_transfer_params=told)
    assert (await decode.post(CHAT, json=other)).status_code == 500


async def test_sglang_s_legs_meet_in_a_room(simulator: Starter, tmp_path: Path) -> None:
    shared: dict[str, Any] = {"transfer_dir": str(tmp_path), "engine": EngineKind.SGLANG}
    prefill, _ = await simulator(transfer_role=TransferRole.PREFILL, **shared)
    decode, running = await simulator(transfer_role=TransferRole.DECODE, **shared)
    without = await decode.post(CHAT, json=chat("Hello"))
    assert without.status_code == 400
    assert "without bootstrap room id" in without.text
    both = chat("Hello", bootstrap_host="127.0.0.1", bootstrap_port=8998, bootstrap_room=5)
    waiting = asyncio.create_task(decode.post(CHAT, json=both))
    async with asyncio.timeout(30):
        while not running.core.engine.load().running:  # noqa: ASYNC110  # the engine's state, of which nobody tells
            await asyncio.sleep(0.002)
    assert (await prefill.post(CHAT, json=both)).json()["usage"]["completion_tokens"] == 1
    assert (await waiting).status_code == 200


def test_a_role_needs_a_folder() -> None:
    with pytest.raises(SettingsError, match="transfer_dir"):
        SimulatorSettings(transfer_role=TransferRole.ENCODER)
