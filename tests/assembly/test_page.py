"""What the page is told of policies, and that pictures go to the loop one at a time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.assembly.page import checked, effective
from gateway.errors import NotPermitted
from gateway.policy.policyset import builtin_policies
from gateway.types import TenantId
from tests.app.running import MODEL, running, until
from tests.policy.examples import policy_set

POLICIES = policy_set(
    default="rules:\n  max_images: 9\ntasks:\n  chat: {}\n  ocr: {max_pixels: 262144}\n",
    acme="tenant: acme\nkv_tokens_in_flight: 5000\nmodels:\n  'Qwen/*': {max_images: 2}\n",
)
ACME = TenantId("acme")


def valued(*arguments: Any) -> dict[str, Any]:
    found: Any = effective(POLICIES, *arguments)
    json.dumps(found)
    return {each["key"]: each for each in found["values"]} | {"": found}


def test_every_value_says_where_it_was_written() -> None:
    found = valued(ACME, "ocr", "Qwen/Qwen3-VL-8B-Instruct")
    assert found["max_images"]["value"] == "2"
    assert found["max_images"]["source"] == "policies/acme.yaml:4 models.Qwen/*.max_images"
    assert found["max_pixels"]["source"] == "policies/default.yaml:5 tasks.ocr.max_pixels"
    assert found["kv_tokens_in_flight"]["value"] == "5000"
    assert (found["max_image_bytes"]["built_in"], found["max_pixels"]["built_in"]) == (True, False)
    assert all(each["summary"] for key, each in found.items() if key)
    assert found[""]["files"] == ["policies/default.yaml", "policies/acme.yaml"]
    assert valued(ACME, None, None)["max_images"]["value"] == "9"


def test_what_is_not_limited_is_told_in_words_that_a_file_would_not_read_as_the_opposite() -> None:
    found = valued(ACME, None, None)
    told = {key: found[key]["value"] for key in ("hosts", "allowed_models", "max_pixels", "rates", "max_side")}
    assert told == {
        "hosts": "any public host",
        "allowed_models": "any",
        "max_pixels": "the engine's own cap",
        "rates": "none",
        "max_side": "no limit",
    }
    fewer: Any = checked("tenant: acme\nrules: {max_pixels: 262144}\nhosts: none\n", POLICIES)
    changes = {each["key"]: (each["old"], each["new"]) for each in fewer["changes"] if each["task"] == "chat"}
    assert changes["max_pixels"] == ("the engine's own cap", "262144")
    assert changes["hosts"] == ("any public host", "none")


def test_who_is_not_there_has_no_policy() -> None:
    with pytest.raises(NotPermitted):
        effective(POLICIES, TenantId("nobody"), None, None)
    with pytest.raises(NotPermitted):
        effective(POLICIES, ACME, "nothing", None)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("tenant: acme\nrules:\n  max_pixles: 5\n", 3, "max_pixels"),
        ("rules: ]", 1, "YAML"),
        ("a: &a [*a]", 1, "alias"),
        ("tenant: acme\ndefault_task: nothing\n", 2, "not among the tasks"),
        ("tenant: default\n", 1, "reserved"),
    ],
)
def test_mistakes_are_told_with_their_line(text: str, line: int, said: str) -> None:
    verdict: Any = checked(text, POLICIES)
    assert verdict["ok"] is False
    assert any(said in each["message"] for each in verdict["problems"]), verdict
    assert verdict["problems"][0]["line"] == line


def test_what_a_valid_file_would_change() -> None:
    text = "tenant: acme\nkv_tokens_in_flight: 5000\nmodels:\n  'Qwen/*': {max_images: 3}\n"
    verdict: Any = checked(text, POLICIES)
    assert (verdict["ok"], verdict["tenant"], verdict["changes_count"]) == (True, "acme", 2)
    (change, _) = verdict["changes"]
    assert (change["key"], change["old"], change["new"]) == ("max_images", "2", "3")
    everybody: Any = checked("rules:\n  max_images: 9\n", builtin_policies())
    assert everybody["ok"]
    assert {each["key"] for each in everybody["changes"]} == {"max_images"}
    assert (
        checked("tenant: acme\nkv_tokens_in_flight: 5000\nmodels:\n  'Qwen/*': {max_images: 2}\n", POLICIES)["changes"]
        == []
    )


def test_a_pasted_file_without_the_keys_says_whom_it_lets_in() -> None:
    keyed = f"tenant: acme\nkeys: ['sha256:{'a' * 64}']\n"
    policies = policy_set(acme=keyed)
    verdict: Any = checked("tenant: acme\n", policies)
    assert [(each["tenant"], each["key"], each["new"]) for each in verdict["changes"]] == [
        ("*", "keys", "no key is asked for any more"),
        ("acme", "keys", "none"),
    ]
    assert verdict["changes_count"] == 2
    assert checked(keyed, policies)["changes"] == []


def test_of_what_would_take_long_to_compare_only_the_verdict_is_told() -> None:
    many = "models:\n" + "".join(f"  'm{number}*': {{max_images: 1}}\n" for number in range(1_500))
    verdict: Any = checked(many, POLICIES)
    assert (verdict["ok"], verdict["changes"], verdict["changes_count"]) == (True, [], None)


async def test_all_of_it_is_asked_from_another_thread_and_answered_on_the_loop() -> None:
    async with running() as up:
        choices = (await up.admin.get("/ui/api/choices")).json()
        assert choices["served"] == [MODEL]
        assert choices["data_port"] == up.data_port
        assert [each["name"] for each in choices["tenants"]] == ["default"]
        asked = [up.admin.post("/ui/api/sizes", json={"sizes": [[640, 480]], "models": [MODEL]}) for _ in range(3)]
        for answer in await asyncio.gather(*asked):
            assert answer.json()["sizes"][0][0]["tokens"] == 300
        assert (await up.admin.get("/ui/api/policy", params={"tenant": "default"})).json()["task"] == "chat"
        broken = await up.admin.post("/ui/api/check", content=b"rules:\n  max_pixles: 5\n")
        assert broken.json()["ok"] is False
        nothing = await up.admin.post("/ui/api/picture", params={"model": MODEL}, content=b"no picture at all")
        assert nothing.json()["rows"][0]["error"] == "image_undecodable"
        await up.chat()
        await until(lambda: up.gateway._recorder.recent.look().sums["requests"] == 1)
        async with up.admin.stream("GET", "/ui/api/live") as events:
            line = await anext(events.aiter_lines())
        look = json.loads(line.removeprefix("data: "))
        assert (look["sums"]["requests"], look["decisions"][0]["status"]) == (1, 200)
