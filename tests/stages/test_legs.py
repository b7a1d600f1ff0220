"""Requests in legs, by hand: what helpers get, what the chosen backend gets, and what is sent when they cannot help."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.journey import travel
from gateway.legwork import LegEnd
from gateway.routing.ask import Profile, Weights
from gateway.types import BackendName, BackendRole, EngineKind
from tests.journey.driver import drive
from tests.journey.fake_legs import GRID, FakeLegs
from tests.journey.fakes import Scene, view
from tests.journey.scenes import BUSY, DATA_URL, PLAIN, SETTINGS, body
from tests.journey.test_journey import refused, traveled

ENCODED, COMPUTED, AT_ONCE = (
    SETTINGS[name] for name in ("encoded elsewhere", "computed elsewhere", "computed elsewhere at once")
)
REFUSED, FAILED = LegEnd.REFUSED, LegEnd.FAILED


def legs_of(scene: Scene) -> FakeLegs:
    assert isinstance(scene.legs, FakeLegs)
    return scene.legs


def sent(scene: Scene, number: int = -1) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(scene.upstream.sent[number][2])
    return document


def content(scene: Scene) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = sent(scene)["messages"][0]["content"]
    return parts


def test_each_picture_has_a_leg_and_the_consumer_gets_ids_and_grids() -> None:
    scene = traveled(ENCODED)
    legs = [json.loads(leg) for _, leg in legs_of(scene).asked]
    pictures = [leg["messages"][0]["content"][0] for leg in legs]
    assert [leg["max_tokens"] for leg in legs] == [1, 1]
    # The first is shrunk, the second goes as it came.
    assert pictures[0]["image_url"]["url"] == "data:image/jpeg;base64,QUJD"
    assert pictures[1]["image_url"]["url"] == DATA_URL + "QUJD"
    ids = [picture["uuid"] for picture in pictures]
    assert len({len(each) for each in ids}) == 1
    assert len(set(ids)) == 2
    expected = [{"type": "image_embeds", "image_embeds": GRID, "uuid": each} for each in ids]
    assert content(scene)[1:] == expected
    told = sent(scene)["ec_transfer_params"]
    assert told == {each: {"item_indices": [index], "metadata": GRID} for index, each in enumerate(ids)}
    assert scene.record.legs == {("encoder", "done"): 2}
    stages = [stage for stage, _ in scene.record.stages]
    assert stages.index("prepare") < stages.index("encode") < stages.index("splice") < stages.index("forward")


def test_legs_stand_on_the_encoders_accounts() -> None:
    scene = traveled(ENCODED)
    costs = {name: cost for name, cost, _ in scene.upstream.accounts if name in ("e", "f")}
    assert costs
    assert all(cost.encode_patches > 0 and cost.output_tokens == 0 for cost in costs.values())


def test_the_client_s_own_names_reach_nobody() -> None:
    fields = {"ec_transfer_params": {"x": {}}, "kv_transfer_params": {"do_remote_prefill": True}}
    scene = traveled(replace(ENCODED, body=body(DATA_URL, DATA_URL + "QUJD", **fields)))
    assert "x" not in sent(scene)["ec_transfer_params"]
    assert "kv_transfer_params" not in sent(scene)


@pytest.mark.parametrize(("queue_weight", "helper"), [(1.0, "q"), (0.0, "p")])
def test_helpers_are_chosen_by_the_weights_that_are_set(queue_weight: float, helper: str) -> None:
    waits, decodes = view("p", role=BackendRole.PREFILL), view("q", role=BackendRole.PREFILL)
    helpers = (replace(waits, queued_prefill_tokens=50_000), replace(decodes, inflight_requests=200))
    routing = Profile(weights=Weights(queue=queue_weight))
    scene = traveled(replace(SETTINGS["computed elsewhere"], helpers=helpers, routing=routing))
    assert [name for name, _ in legs_of(scene).asked] == [helper]


def test_a_refused_leg_goes_to_another_encoder() -> None:
    scene = traveled(replace(ENCODED, ends=(REFUSED,), retries=5))
    names = [name for name, _ in legs_of(scene).asked]
    assert len(names) == 3
    assert names[2] != names[0]
    assert scene.record.legs == {("encoder", "refused"): 1, ("encoder", "done"): 2}
    assert [part["type"] for part in content(scene)] == ["text", "image_embeds", "image_embeds"]


@pytest.mark.parametrize("ends", [(FAILED,), (LegEnd.DONE, FAILED), (REFUSED, LegEnd.DONE, REFUSED)])
def test_pictures_go_themselves_when_one_of_them_is_not_encoded(ends: tuple[LegEnd, ...]) -> None:
    """All of them: an engine takes no mixture."""
    scene = traveled(replace(ENCODED, ends=ends, retries=5))
    assert [part["type"] for part in content(scene)] == ["text", "image_url", "image_url"]
    assert "ec_transfer_params" not in sent(scene)
    assert scene.record.legs["encoder", "whole"] == 1


def test_without_resends_left_a_refusal_is_the_end_of_it() -> None:
    scene = traveled(replace(ENCODED, ends=(REFUSED,), retries=0))
    assert scene.record.legs["encoder", "whole"] == 1


def test_no_encoder_of_this_model_or_engine_means_whole() -> None:
    for helper in (view("e", models=("other",)), view("e", engine=EngineKind.GENERIC)):
        scene = traveled(replace(ENCODED, helpers=(replace(helper, role=ENCODED.helpers[0].role),)))
        assert legs_of(scene).asked == []
        assert scene.record.legs == {("encoder", "whole"): 1}


def test_what_is_surely_written_is_not_asked_for_again() -> None:
    first = traveled(ENCODED)
    scene = ENCODED.scene()
    legs_of(scene).known.update(legs_of(first).known)
    legs_of(scene).written.update(legs_of(first).known)
    assert drive(travel(scene.client, OpenAIChat(), scene.ports, ENCODED.world())).escaped is None
    assert legs_of(scene).asked == []
    assert scene.record.legs == {("encoder", "remembered"): 2}


def test_a_consumer_that_refuses_costs_no_second_encoding() -> None:
    scene = traveled(replace(ENCODED, answers=(BUSY, PLAIN)))
    assert len(legs_of(scene).asked) == 2
    assert sent(scene, 0)["ec_transfer_params"] == sent(scene, 1)["ec_transfer_params"]


def test_shadow_goes_whole() -> None:
    scene = traveled(replace(SETTINGS["shadow"], views=ENCODED.views, helpers=ENCODED.helpers))
    assert legs_of(scene).asked == []


def test_the_prompt_s_leg_makes_one_token_and_the_decoder_hears_of_its_blocks() -> None:
    scene = traveled(replace(COMPUTED, body=body(stream=True, max_completion_tokens=9, min_tokens=3, n=1)))
    ((prefill, leg),) = legs_of(scene).asked
    first = json.loads(leg)
    assert prefill in ("p", "q")
    assert (first["max_tokens"], first["max_completion_tokens"], first["stream"]) == (1, 1, False)
    assert first["kv_transfer_params"]["do_remote_decode"] is True
    assert not {"min_tokens", "n", "stream_options"} & first.keys()
    assert sent(scene)["kv_transfer_params"] == {"do_remote_prefill": True, "remote_block_ids": [1, 2]}
    assert (sent(scene)["max_completion_tokens"], sent(scene)["stream"]) == (9, True)
    assert scene.record.legs == {("prefill", "done"): 1}


@pytest.mark.parametrize(
    ("ends", "legs"),
    [
        ((REFUSED,), {("prefill", "refused"): 1, ("prefill", "done"): 1}),
        ((FAILED,), {("prefill", "failed"): 1, ("prefill", "whole"): 1}),
        ((REFUSED, REFUSED), {("prefill", "refused"): 2, ("prefill", "whole"): 1}),
    ],
)
def test_a_prefill_that_does_not_help(ends: tuple[LegEnd, ...], legs: dict[tuple[str, str], int]) -> None:
    scene = traveled(replace(COMPUTED, ends=ends, retries=5))
    assert scene.record.legs == legs
    assert ("kv_transfer_params" in sent(scene)) == (("prefill", "done") in legs)


def test_blocks_once_computed_are_offered_to_the_next_decoder() -> None:
    decoders = (*COMPUTED.views, replace(COMPUTED.views[0], name=BackendName("b")))
    scene = traveled(replace(COMPUTED, views=decoders, answers=(BUSY, *COMPUTED.answers)))
    assert len(legs_of(scene).asked) == 1
    assert sent(scene, 0)["kv_transfer_params"] == sent(scene, 1)["kv_transfer_params"]


def test_sglang_s_legs_meet_in_one_room() -> None:
    scene = traveled(AT_ONCE)
    ((_, first),) = legs_of(scene).asked
    assert json.loads(first) == sent(scene)
    told = {key: value for key, value in sent(scene).items() if key.startswith("bootstrap_")}
    assert told == {"bootstrap_host": told["bootstrap_host"], "bootstrap_port": 8998, "bootstrap_room": 7}
    assert told["bootstrap_host"] in ("p", "q")


def test_sglang_s_prefill_that_refuses_is_replaced_and_one_that_fails_is_not() -> None:
    scene = traveled(replace(AT_ONCE, ends=(REFUSED,), retries=5))
    assert sorted(name for name, _ in legs_of(scene).asked) == ["p", "q"]
    assert refused(replace(AT_ONCE, ends=(FAILED,))).code == "no_backend"
    assert refused(replace(AT_ONCE, helpers=ENCODED.helpers)).code == "no_backend"
