"""An explanation says what the journey would do, with the same answers, and does none of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.errors import Undecodable
from gateway.explain import answer_estimate, asked_path, explain, unread
from gateway.journey import travel
from gateway.media.shm import HeapBody
from gateway.quota.claim import Unit
from gateway.types import Size
from tests.journey.driver import drive
from tests.journey.fakes import Scene, facts, view
from tests.journey.scenes import DATA_URL, SETTINGS, SHADOW, Setting, body
from tests.policy.examples import policy_set


def explained(setting: Setting, blow_at: int | None = None, blow: BaseException | None = None) -> dict[str, Any]:
    return told(setting, blow_at, blow)[0]


def told(
    setting: Setting, blow_at: int | None = None, blow: BaseException | None = None
) -> tuple[dict[str, Any], Scene, tuple[str, ...]]:
    scene = setting.scene()
    found: dict[str, Any] = {}

    async def work() -> None:
        found.update(
            await explain(HeapBody(setting.body), scene.client.head, OpenAIChat(), scene.ports, setting.world())
        )

    coroutine: Coroutine[object, None, None] = work()
    came = drive(coroutine, blow_at, blow)
    assert came.escaped is None or isinstance(came.escaped, asyncio.CancelledError)
    json.dumps(found)  # it goes out as JSON
    return found, scene, came.trail


def test_nothing_is_reserved_prepared_or_sent() -> None:
    found, scene, trail = told(SETTINGS["two images"])
    assert trail == ("media.look",)
    assert (scene.budgets.asked, scene.upstream.sent, scene.media.jobs) == ([], [], [])
    assert scene.books.still_open == []
    assert list(found) == ["call", "policy", "model", "images", "estimate", "findings", "budget", "decision", "cost"]


@pytest.mark.parametrize("name", ["text", "two images", "streaming", "shadow"])
def test_it_says_what_the_journey_then_does(name: str) -> None:
    setting = SETTINGS[name]
    found = explained(setting)
    scene = setting.scene()
    drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world()))
    record, estimate = scene.record, scene.record.estimate
    assert estimate is not None
    assert found["estimate"]["kv_tokens"] == estimate.kv_tokens == scene.budgets.asked[0].held(Unit.KV_TOKENS)
    assert found["decision"]["backend"] == record.backend
    assert found["decision"]["reason"] == record.decision_reason
    assert found["decision"]["exact_prefix_tokens"] == record.exact_prefix_tokens
    assert found["policy"]["task"] == record.task
    assert found["findings"] == record.findings
    assert [image["digest"] for image in found["images"]] == record.image_digests


def test_each_image_with_its_plan() -> None:
    first, second = explained(SETTINGS["two images"])["images"]
    assert (first["part"], first["changes"]) == ("messages.0.content.1.image_url", ["resized"])
    assert first["original"] == [2048, 2048]
    assert first["tokens"] < first["tokens_original"]
    assert second["untouched"]


def test_every_value_of_the_policy_with_its_reason() -> None:
    values = explained(SETTINGS["two images"])["policy"]["values"]
    assert values["max_pixels"]["value"] == 200_704
    assert "default.yaml" in values["max_pixels"]["reason"]
    assert all(entry["reason"] for entry in values.values())


def test_the_budget_as_it_stands() -> None:
    setting = SETTINGS["two images"]
    budget = explained(setting)["budget"]
    assert (budget["limit_kv_tokens"], budget["left_kv_tokens"]) == (100_000, 100_000)
    assert explained(SETTINGS["text"])["budget"]["left_kv_tokens"] is None


def test_a_refusal_is_part_of_the_explanation() -> None:
    found = explained(Setting(body(model="nobody")))
    assert found["refused"]["code"] == "model_not_found"
    assert (found["refused"]["status"], found["refused"]["part"]) == (404, "model")
    assert "policy" in found
    assert "decision" not in found
    assert explained(Setting(b"nonsense"))["refused"]["code"] == "not_json"
    over = Setting(body(DATA_URL, DATA_URL), policies=policy_set(default="rules:\n  max_images: 1\n"))
    assert explained(over)["refused"]["rule"] == "max_images"


def test_where_no_backend_is_configured_everything_but_the_choice_is_told() -> None:
    found = explained(Setting(body(model="Qwen/Qwen3-VL-8B-Instruct"), views=()))
    assert (found["decision"]["backend"], found["decision"]["reason"]) == (None, "no backend is configured")
    assert found["cost"]["kv_bytes"]
    assert "refused" not in found


def test_an_unknown_models_context_refuses_nothing_as_in_the_journey() -> None:
    mystery = view("a", models=("mystery",), model_root="mystery", context_tokens=5)
    assert "refused" not in explained(Setting(body(model="mystery"), views=(mystery,)))


def test_shadow_mode_finds_and_does_not_refuse() -> None:
    setting = replace(SETTINGS["shadow"], facts=(facts(Size(64, 64)),), policies=SHADOW)
    found = explained(setting, 0, Undecodable())
    assert found["findings"] == ["image_undecodable"]
    assert found["images"] == []
    assert "decision" in found
    assert explained(SETTINGS["two images"], 0, Undecodable())["refused"]["code"] == "image_undecodable"


def estimated(setting: Setting, blow_at: int | None = None, blow: BaseException | None = None) -> tuple[Scene, Any]:
    scene = setting.scene()
    came = drive(answer_estimate(scene.client, OpenAIChat(), scene.ports, setting.world()), blow_at, blow)
    assert came.escaped is None or isinstance(came.escaped, asyncio.CancelledError)
    assert scene.books.still_open == []
    return scene, json.loads(scene.client.written) if scene.client.written else None


def test_an_estimate_is_the_explanation_without_what_only_operators_see() -> None:
    setting = SETTINGS["two images"]
    scene, told = estimated(setting)
    whole = explained(setting)
    assert (scene.client.status, scene.upstream.sent, scene.budgets.asked) == (200, [], [])
    assert told["estimate"] == whole["estimate"]
    assert told["images"] == whole["images"]
    assert whole["policy"].keys() - told["policy"].keys() == {"values"}
    assert whole["decision"].keys() - told["decision"].keys() == {"trail"}
    assert (scene.record.dialect, scene.record.outcome) == ("estimate", "ok")


def test_what_cannot_be_read_is_refused_and_what_would_be_refused_is_told() -> None:
    scene, told = estimated(Setting(b"nonsense"))
    assert told is None
    assert [error.code for error in scene.client.refusals] == ["not_json"]
    scene, told = estimated(Setting(body(model="nobody")))
    assert (scene.client.status, told["refused"]["code"]) == (200, "model_not_found")
    assert "detail" not in told["refused"]


def test_an_abandoned_estimate_leaves_nothing_open() -> None:
    _, _, trail = told(SETTINGS["two images"])
    for at in range(len(trail) + 2):
        scene, _ = estimated(SETTINGS["two images"], at, asyncio.CancelledError())
        assert scene.record.outcome in {"shed", "ok"}


def test_each_image_says_why() -> None:
    reasons = [image["reason"] for image in explained(SETTINGS["two images"])["images"]]
    assert reasons == ["policy_cap", "conforming"]
    budgeted = replace(SETTINGS["two images"], policies=policy_set(default="rules: {max_image_tokens: 500}\n"))
    assert [image["reason"] for image in explained(budgeted)["images"]] == ["token_budget", "conforming"]
    bucketed = replace(SETTINGS["two images"], policies=policy_set(default="rules: {buckets: [896x896]}\n"))
    assert [image["reason"] for image in explained(bucketed)["images"]] == ["bucket", "conforming"]
    for rules, reason in (
        ("{detail: {auto: 512x512}}", "detail"),
        ("{max_side: 512}", "max_side"),
        ("{max_total_pixels: 1MP}", "shared_budget"),
    ):
        capped = replace(SETTINGS["two images"], policies=policy_set(default=f"rules: {rules}\n"))
        assert [image["reason"] for image in explained(capped)["images"]] == [reason, "conforming"]
    floor = replace(SETTINGS["two images"], policies=policy_set(default="rules: {max_pixels: 3136}\n"))
    assert explained(floor)["images"][0]["knob"] == "mm_processor_kwargs.min_pixels"
    assert explained(SETTINGS["shadow"])["images"][0]["reason"] == "preserved"


def test_the_position_that_follows_the_prompt() -> None:
    found = explained(SETTINGS["two images"])
    advances = [image["position_advance"] for image in found["images"]]
    around = found["estimate"]["text_tokens"] + found["estimate"]["image_overhead_tokens"]
    assert found["estimate"]["next_position"] == around + sum(advances)


def test_the_cost_on_the_chosen_backend() -> None:
    setting = SETTINGS["two images"]
    cost = explained(setting)["cost"]
    assert cost["kv_bytes"] > 0
    assert cost["prefill_ms"] > 0
    assert cost["encode_ms"] > 0
    assert not cost["is_calibrated"]


def test_what_is_left_out_is_named() -> None:
    drops = policy_set(default="rules: {max_images: 1, on_excess: drop_oldest}\n")
    found = explained(replace(SETTINGS["two images"], policies=drops, facts=(facts(),)))
    assert found["omitted"] == ["messages.0.content.1.image_url"]
    assert [image["part"] for image in found["images"]] == ["messages.0.content.2.image_url"]


@pytest.mark.parametrize(
    ("query", "header", "path"),
    [
        ("", None, "/v1/chat/completions"),
        ("path=/v1/messages", None, "/v1/messages"),
        ("path=%2Fv1%2Fresponses&only=images", "/v1/messages", "/v1/responses"),
        ("", "/v1/messages", "/v1/messages"),
    ],
)
def test_the_query_or_a_header_says_whose_body_it_is(query: str, header: str | None, path: str) -> None:
    assert asked_path(query, header) == path


def test_a_path_that_nobody_reads_is_named() -> None:
    error = unread("/v1/" + "x" * 200)
    assert (error.code, error.status, error.part) == ("invalid_request", 400, "path")
    assert len(error.message) < 160
