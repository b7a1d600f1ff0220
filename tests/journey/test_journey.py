"""What a journey does when nothing strikes it: the order of its stages, and what each of them hands on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.errors import GatewayError, Undecodable
from gateway.journey import travel
from gateway.policy.policyset import DEFAULT_TENANT
from gateway.ports import PromptCount
from gateway.quota.claim import Hold, Unit, Used
from gateway.stages.omission import MARKER
from gateway.stages.pump import USAGE_TAIL_BYTES
from gateway.types import BackendName, Change, EngineKind, Size
from tests.journey.counting import FakePrompts
from tests.journey.driver import drive
from tests.journey.fakes import MODEL, STREAM_TYPE, Answer, Scene, facts, view
from tests.journey.scenes import CAPPED, DATA_URL, EVENTS, PLAIN, SETTINGS, SHADOW, Setting, body
from tests.policy.examples import policy_set

STAGES = (
    "accept", "read", "resolve", "check", "fetch", "plan", "estimate", "reserve", "decide", "prepare", "splice",
    "forward", "relay", "settle",
)  # fmt: skip
BIG = Size(2048, 2048)
ONE_IMAGE = policy_set(default="rules:\n  max_images: 1\n")


def traveled(setting: Setting) -> Scene:
    scene = setting.scene()
    assert drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world())).escaped is None
    return scene


def refused(setting: Setting) -> GatewayError:
    scene = traveled(setting)
    (error,) = scene.client.refusals
    assert scene.books.still_open == []
    return error


def sent(scene: Scene, which: int = -1) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(scene.upstream.sent[which][2])
    return found


def test_the_stages_are_met_in_order() -> None:
    scene = traveled(SETTINGS["two images"])
    met = list(dict.fromkeys(stage for stage, _ in scene.record.stages))
    assert met == list(STAGES)
    assert all(seconds > 0 for _, seconds in scene.record.stages)


def test_a_text_request_is_relayed_byte_for_byte_both_ways() -> None:
    setting = Setting(
        b' { "model":"' + b"Qwen/Qwen3-VL-8B-Instruct" + b'","messages":[],"seed":1.50,"x":{"b":1,"a":2}}\n'
    )
    scene = traveled(setting)
    assert scene.upstream.sent[0][2] == setting.body
    assert scene.client.written == b"".join(PLAIN.pieces)
    assert (scene.client.status, scene.client.content_length) == (200, len(scene.client.written))
    record = scene.record
    assert (record.request_bytes, record.forwarded_bytes) == (len(setting.body), len(setting.body))
    assert (record.response_bytes, record.status, record.outcome) == (len(scene.client.written), 200, "ok")
    assert scene.media.scopes == []


def test_an_image_over_the_cap_is_replaced_and_the_other_stays_as_it_came() -> None:
    scene = traveled(SETTINGS["two images"])
    parts = sent(scene)["messages"][0]["content"]
    assert [part["image_url"]["url"] for part in parts[1:]] == ["data:image/jpeg;base64,QUJD", DATA_URL + "QUJD"]
    (job,) = scene.media.jobs
    assert job.plan.changes == (Change.RESIZED,)
    assert job.plan.target.pixels <= 200_704
    record = scene.record
    assert (record.images_shrunk, record.images_passed) == (1, 1)
    assert record.image_bytes_out == 3 + 1001
    assert (record.cache_queries, record.cache_hits) == (1, 1)


def test_what_the_backend_holds_goes_as_its_id_and_is_not_even_prepared() -> None:
    scene = traveled(SETTINGS["held by their ids"])
    _, large, small = sent(scene)["messages"][0]["content"]
    assert large["image_url"] is small["image_url"] is None
    assert large["uuid"] != small["uuid"]
    assert scene.media.jobs == []
    record = scene.record
    assert (record.image_ids_sent, record.image_ids_alone, record.image_ids_missed) == (2, 2, 0)
    assert dict(scene.client.headers)["x-vlmgw-images"] == "passed=1, shrunk=1, recoded=0, by_id=2"
    assert record.forwarded_bytes < 1_000


@pytest.mark.parametrize("name", ["held no more", "held no more, streaming"])
def test_what_it_holds_no_more_is_sent_again_and_the_client_sees_nothing(name: str) -> None:
    scene = traveled(SETTINGS[name])
    first, second = (sent(scene, which)["messages"][0]["content"] for which in (0, 1))
    assert [backend for backend, _, _ in scene.upstream.sent] == [scene.record.backend] * 2
    assert first[1]["image_url"] is None
    assert second[1] == {
        "type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}, "uuid": first[1]["uuid"]
    }  # fmt: skip
    assert len(scene.media.jobs) == 1
    assert (scene.client.status, scene.client.refusals) == (200, [])
    assert b"Cache miss" not in scene.client.written
    assert scene.books.endings("response") == ["closed", "closed"]
    assert scene.books.endings("reservation") == ["settled"]
    assert len(scene.upstream.accounts) == 1
    record = scene.record
    assert (record.status, record.attempts, record.retry_reasons) == (200, 2, ["cache_miss"])
    assert record.image_ids_missed == record.image_ids_sent == len(first) - 1


def test_what_is_reserved_is_the_estimate_within_the_tenants_limit() -> None:
    scene = traveled(SETTINGS["two images"])
    estimate = scene.record.estimate
    assert estimate is not None
    (claim,) = scene.budgets.asked
    assert (claim.tenant, claim.queue_timeout_s, claim.shadow) == (DEFAULT_TENANT, 10.0, False)
    assert claim.holds[0] == Hold(Unit.KV_TOKENS, estimate.kv_tokens, 100_000)


def test_shadow_mode_reports_and_changes_nothing() -> None:
    strict = policy_set(default="mode: shadow\nkv_tokens_in_flight: 10\nrules:\n  max_images: 1\n  max_pixels: 65536\n")
    setting = Setting(body(DATA_URL, DATA_URL), facts=(facts(BIG), facts(BIG)), policies=strict)
    scene = traveled(setting)
    assert scene.upstream.sent[0][2] == setting.body
    assert scene.record.shadow
    assert "too_many_images:max_images" in scene.record.findings
    assert scene.budgets.asked[0].shadow


def test_an_image_that_cannot_be_planned_names_its_part() -> None:
    cut_off = replace(facts(), probe=replace(facts().probe, complete=False))
    error = refused(Setting(body(DATA_URL), facts=(cut_off,)))
    assert (error.code, error.part) == ("image_undecodable", "messages.0.content.1.image_url")


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        (Setting(b"[1]"), "not_json"),
        (Setting(b'{"messages":7}'), "invalid_request"),
        (Setting(body(model="nobody-serves-this")), "model_not_found"),
        (Setting(body(), views=()), "no_backend"),
        (Setting(body(DATA_URL, DATA_URL), policies=ONE_IMAGE), "too_many_images"),
        (
            Setting(body(max_tokens=1), views=(view("a", context_tokens=5),)),
            "context_length_exceeded",
        ),
    ],
)  # fmt: skip
def test_a_refusal_comes_before_anything_is_spent(setting: Setting, code: str) -> None:
    scene = setting.scene()
    drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world()))
    assert [error.code for error in scene.client.refusals] == [code]
    assert scene.upstream.sent == []
    assert scene.record.code == code


def test_the_context_is_not_held_against_a_model_nobody_knows() -> None:
    unknown = view("a", models=("mystery",), model_root="mystery", context_tokens=5)
    scene = traveled(Setting(body(model="mystery"), views=(unknown,)))
    assert scene.record.outcome == "ok"


def test_a_request_without_a_model_goes_to_what_is_served() -> None:
    scene = traveled(Setting(b'{"messages":[]}'))
    assert (scene.record.outcome, scene.upstream.sent[0][2]) == ("ok", b'{"messages":[]}')


def test_the_task_header_decides_the_task() -> None:
    scene = traveled(
        Setting(body(), policies=policy_set(default="tasks:\n  chat:\n  ocr:\n"), headers=(("X-Vlmgw-Task", "ocr"),))
    )
    assert scene.record.task == "ocr"


def test_keep_alive_comments_begin_only_for_streams() -> None:
    streaming = replace(SETTINGS["keep-alive comments"], keepalive_comment_s=2.5)
    assert traveled(streaming).client.keep_alive_s == 2.5
    assert traveled(Setting(body(), keepalive_comment_s=2.5)).client.keep_alive_s is None


def test_after_the_first_comment_a_backends_refusal_is_a_stream_error() -> None:
    error = refused(SETTINGS["keep-alive comments, refused"])
    assert error.code == "backend_failed"
    assert "400" in error.message


def test_after_the_first_comment_only_a_stream_may_follow() -> None:
    error = refused(replace(SETTINGS["keep-alive comments"], answers=(PLAIN,)))
    assert (error.code, error.message) == ("backend_failed", "The backend did not answer with an event stream.")


def test_usage_is_found_at_the_end_of_a_long_stream() -> None:
    filler = tuple(b'data: {"choices":[{"delta":{"content":"' + b"x" * 9_000 + b'"}}]}\n\n' for _ in range(20))
    long = replace(EVENTS, pieces=filler + EVENTS.pieces[1:])
    assert sum(map(len, filler)) > 2 * USAGE_TAIL_BYTES
    scene = traveled(Setting(body(stream=True), (long,)))
    assert scene.record.usage is not None
    assert scene.record.usage.prompt_tokens == 30


def test_without_usage_the_estimate_is_settled() -> None:
    scene = traveled(Setting(body(stream=True), (Answer(headers=(STREAM_TYPE,), pieces=(b"data: [DONE]\n\n",)),)))
    assert scene.record.usage is None
    assert scene.books.endings("reservation") == ["settled"]
    assert scene.budgets.reservations[0].settled is None


def test_what_engines_count_teaches_the_next_estimate() -> None:
    setting = Setting(body(padding="x", messages=[{"role": "user", "content": "word " * 200}]))
    world = setting.world()
    prompts = []
    for _ in range(2):
        scene = setting.scene()
        answer = {"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 1}}
        scene.upstream._answers = [Answer(pieces=(json.dumps(answer).encode(),))]
        drive(travel(scene.client, OpenAIChat(), scene.ports, world))
        assert scene.record.estimate is not None
        prompts.append(scene.record.estimate.text_tokens)
    assert abs(prompts[1] - 900) < abs(prompts[0] - 900)


def test_nothing_is_learnt_where_the_engine_adds_what_it_has_kept() -> None:
    counted = {"input_tokens": 900, "output_tokens": 1}
    for more, is_learnt in (({}, True), ({"previous_response_id": "resp_1"}, False)):
        asked = json.dumps({"model": MODEL, "input": "word " * 200, **more}).encode()
        setting = Setting(asked, (Answer(pieces=(json.dumps({"usage": counted}).encode(),)),))
        scene, world = setting.scene(path="/v1/responses"), setting.world()
        served = world.book.serve(MODEL, setting.views)
        before = world.book.estimate_text(served, 1000, 1)
        drive(travel(scene.client, OpenAIResponses(), scene.ports, world))
        assert scene.budgets.reservations[0].settled == Used(900, 1)
        assert (world.book.estimate_text(served, 1000, 1) != before) is is_learnt


@pytest.mark.parametrize(
    ("fields", "policies", "is_learnt"),
    [
        ({}, {}, True),
        ({"mm_processor_kwargs": {"max_pixels": 3136}}, {}, True),  # stripped: the engine never sees it
        ({"mm_processor_kwargs": {"max_pixels": 3136}}, {"default": "engine_fields: allow\n"}, False),
    ],
)
def test_one_clients_own_settings_teach_nothing_about_the_others(
    fields: dict[str, Any], policies: dict[str, str], is_learnt: bool
) -> None:
    messages = [{"role": "user", "content": "word " * 200}]
    asked = json.dumps({"model": MODEL, "messages": messages, **fields}).encode()
    answer = json.dumps({"usage": {"prompt_tokens": 900, "completion_tokens": 1}}).encode()
    setting = Setting(asked, (Answer(pieces=(answer,)),), policies=policy_set(**policies))
    scene, world = setting.scene(), setting.world()
    served = world.book.serve(MODEL, setting.views)
    before = world.book.estimate_text(served, 1000, 1)
    drive(travel(scene.client, OpenAIChat(), scene.ports, world))
    assert (world.book.estimate_text(served, 1000, 1) != before) is is_learnt


def test_an_engine_we_do_not_know_gets_no_field_of_ours() -> None:
    salted = policy_set(default="isolation:\n  cache_salt: tenant\n")
    generic = Setting(body(), policies=salted, views=(view("a", engine=EngineKind.GENERIC),))
    assert "cache_salt" not in sent(traveled(generic))
    assert sent(traveled(replace(generic, views=(view("a"),))))["cache_salt"] == f"salt-{DEFAULT_TENANT}-None"


def test_a_source_that_cannot_be_looked_at_is_only_a_finding_in_shadow_mode() -> None:
    for policies, outcome in ((SHADOW, "ok"), (CAPPED, "rejected")):
        setting = replace(SETTINGS["shadow"], policies=policies)
        scene = setting.scene()
        other = setting.scene()
        trail = drive(travel(other.client, OpenAIChat(), other.ports, setting.world())).trail
        drive(
            travel(scene.client, OpenAIChat(), scene.ports, setting.world()), trail.index("media.look"), Undecodable()
        )
        assert scene.record.outcome == outcome
        assert scene.books.still_open == []


def test_a_configured_tokenizer_makes_the_estimate_exact() -> None:
    scene = traveled(SETTINGS["counted by its tokenizer"])
    estimate = scene.record.estimate
    assert estimate is not None
    assert estimate.exact
    assert estimate.prompt_tokens == estimate.prompt_lower_bound == 40 + 196  # 40 hold the two around the image


def test_a_prompt_that_only_the_engine_can_tell_is_estimated() -> None:
    scene = traveled(replace(SETTINGS["counted by its tokenizer"], prompts=FakePrompts(None)))
    assert scene.record.estimate is not None
    assert not scene.record.estimate.exact
    uncertain = FakePrompts(PromptCount(40, 1, is_certain=False))
    scene = traveled(replace(SETTINGS["counted by its tokenizer"], prompts=uncertain))
    estimate = scene.record.estimate
    assert estimate is not None
    assert (estimate.exact, estimate.text_tokens) == (False, 38)
    assert estimate.text_lower_bound <= 38 <= estimate.text_upper_bound


def test_images_that_an_engine_counts_otherwise_are_held_against_it() -> None:
    usage = {
        "prompt_tokens": 300,
        "completion_tokens": 5,
        "prompt_tokens_details": {"multimodal_tokens": {"image": 150}},
    }
    answer = Answer(pieces=(json.dumps({"usage": usage}).encode(),))
    setting = Setting(body(DATA_URL), (answer,), facts=(facts(Size(448, 448)),))
    record = traveled(setting).record
    assert (record.expected_image_tokens, record.drift_finding) == (196, "deviates")
    assert (record.drift_inputs["sizes"], record.drift_inputs["family"]) == (["448x448"], "qwen3_vl")
    agreed = {**usage, "prompt_tokens_details": {"multimodal_tokens": {"image": 196}}}
    record = traveled(replace(setting, answers=(Answer(pieces=(json.dumps({"usage": agreed}).encode(),)),))).record
    assert (record.expected_image_tokens, record.drift_finding) == (196, None)


def test_a_streams_first_event_teaches_the_backends_pace() -> None:
    setting = SETTINGS["streaming"]
    scene, world = setting.scene(), setting.world()
    drive(travel(scene.client, OpenAIChat(), scene.ports, world))
    served = world.book.serve(MODEL, setting.views)
    assert scene.record.backend is not None
    assert world.book.pace_on(served, BackendName(scene.record.backend)).samples == 1
    whole = SETTINGS["text"].scene()
    drive(travel(whole.client, OpenAIChat(), whole.ports, world))
    assert sum(world.book.pace_on(served, view.name).samples for view in setting.views) == 1


def test_a_prompt_counted_exactly_is_held_against_usage() -> None:
    setting = replace(SETTINGS["text"], prompts=FakePrompts(PromptCount(30, 0, is_certain=True)))
    assert traveled(setting).record.text_agrees
    other = replace(setting, prompts=FakePrompts(PromptCount(31, 0, is_certain=True)))
    assert traveled(other).record.text_agrees is False
    assert traveled(SETTINGS["text"]).record.text_agrees is None


DROPPING = policy_set(default="rules: {max_images: 2, on_excess: drop_oldest}\n")


def test_the_oldest_images_that_are_too_many_are_never_looked_at_and_leave_a_text() -> None:
    setting = Setting(body(DATA_URL, DATA_URL + "QUJD", DATA_URL), facts=(facts(), facts(number=1)), policies=DROPPING)
    scene = traveled(setting)
    content = sent(scene)["messages"][0]["content"]
    assert content[1] == {"type": "text", "text": MARKER}
    assert [part["type"] for part in content] == ["text", "text", "image_url", "image_url"]
    assert (scene.record.images_omitted, scene.record.images_passed, scene.record.findings) == (1, 2, [])
    assert "omitted=1" in dict(scene.client.headers)["x-vlmgw-images"]


def test_images_that_are_too_large_together_are_shared_out_dropped_or_refused() -> None:
    setting = replace(SETTINGS["two images"], facts=(facts(Size(1024, 1024)), facts(Size(512, 512), number=1)))
    limit = "rules: {max_total_pixels: 786432, on_excess: {max_total_pixels: %s}}\n"
    shrunk = traveled(replace(setting, policies=policy_set(default=limit % "shrink")))
    assert shrunk.record.geometry == ["1024x1024 704x704 scale=0.6875x0.6875 offset=0x0", "512x512"]
    dropped = traveled(replace(setting, policies=policy_set(default=limit % "drop_oldest")))
    assert (dropped.record.geometry, dropped.record.images_omitted) == (["512x512"], 1)
    assert sent(dropped)["messages"][0]["content"][1]["text"] == MARKER
    error = refused(replace(setting, policies=policy_set(default=limit % "reject")))
    assert (error.rule, error.part) == ("max_total_pixels", "messages.0.content.1.image_url")


def test_kv_bytes_are_priced_by_the_models_own_layers() -> None:
    error = refused(Setting(body(), policies=policy_set(default="rules: {max_kv_bytes: 1MB}\n")))
    assert (error.rule, error.code) == ("max_kv_bytes", "too_many_tokens")


def test_a_profile_spells_refusals_as_its_vendor_does() -> None:
    png_only = "rules: {formats: [png]}\n"
    setting = Setting(body(DATA_URL), facts=(facts(),), policies=policy_set(default=f"profile: openai\n{png_only}"))
    error = refused(setting)
    assert (error.code, error.status) == ("image_format_unsupported", 415)
    assert (error.told_code, error.told_status) == ("invalid_image_format", 400)
    scene = traveled(setting)
    assert (scene.record.status, scene.record.code) == (400, "image_format_unsupported")
    assert refused(replace(setting, policies=policy_set(default=png_only))).told_status == 415


def test_a_rule_of_choose_decides_the_task_of_a_request_that_names_none() -> None:
    policies = policy_set(default="choose: [{task: ocr, has_tools: true, path: /v1/chat/*}]\n")
    scene = traveled(Setting(body(tools=[{"type": "function"}]), policies=policies))
    assert (scene.record.task, scene.record.task_reason) == ("ocr", "policies/default.yaml:1 choose.0")
    assert traveled(Setting(body(), policies=policies)).record.task == "chat"
