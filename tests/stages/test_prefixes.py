"""A request's own blocks: when they are known, and what of the request is in them."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.journey import travel
from gateway.ports import PromptCount
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import RawPrompt
from gateway.routing.holding import Holding, RouteKey
from gateway.types import BackendName
from tests.journey.counting import FakePrompts
from tests.journey.driver import drive
from tests.journey.fakes import Scene, facts, view
from tests.journey.scenes import DATA_URL, SETTINGS, SHADOW, Setting, body
from tests.policy.examples import policy_set

PAD = 9
TEXT = RawPrompt(array("Q", range(100, 140)), ())
IMAGE = RawPrompt(array("Q", [1, 2, PAD, 3, *range(100, 137)]), (2,))
SALTED = policy_set(default="isolation: {cache_salt: user}\n")


def asked(setting: Setting) -> Scene:
    scene = setting.scene()
    drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world()))
    return scene


def blocks_of(setting: Setting) -> PromptChains | None:
    scene = asked(setting)
    keys = scene.upstream.looked_ahead
    assert len(keys) <= 1
    return keys[0].prompt if keys else None


def counting(raw: RawPrompt | None, *, is_certain: bool = True) -> FakePrompts:
    return FakePrompts(PromptCount(40, 0 if raw is None else len(raw.placeholders), is_certain=is_certain, raw=raw))


def test_a_text_is_its_tokens() -> None:
    found = blocks_of(replace(SETTINGS["text"], prompts=counting(TEXT)))
    assert found is not None
    assert (list(found.prompt.token_ids), found.prompt.images, found.prompt.salt) == (list(range(100, 140)), (), None)


def test_an_image_takes_as_many_as_it_was_planned_to() -> None:
    found = blocks_of(Setting(body(DATA_URL), facts=(facts(),), prompts=counting(IMAGE)))
    assert found is not None
    (image,) = found.prompt.images
    assert (image.offset, image.length) == (2, 196)
    assert list(found.prompt.token_ids[:200]) == [1, 2, *[PAD] * 196, 3, 100]


def test_the_salt_is_the_one_that_is_sent() -> None:
    setting = replace(SETTINGS["text"], body=body(user="u1"), prompts=counting(TEXT), policies=SALTED)
    found = blocks_of(setting)
    assert found is not None
    assert found.prompt.salt == "salt-default-u1"
    shadow = blocks_of(replace(setting, policies=SHADOW))
    assert shadow is not None
    assert shadow.prompt.salt is None


@pytest.mark.parametrize("gone", ["a", "b"])
def test_one_that_leaves_while_blocks_are_looked_up_is_not_chosen(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = replace(SETTINGS["text"], prompts=counting(TEXT))
    scene = setting.scene()
    upstream = scene.upstream

    async def leaves(_key: RouteKey) -> None:
        upstream._views = [view for view in upstream.views() if view.name != gone]

    monkeypatch.setattr(upstream, "look_ahead", leaves)
    drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world()))
    assert [backend for backend, _, _ in upstream.accounts] == ["ab".replace(gone, "")]


@pytest.mark.parametrize(
    "setting",
    [
        SETTINGS["text"],
        replace(SETTINGS["text"], prompts=counting(None)),
        replace(SETTINGS["text"], prompts=counting(TEXT, is_certain=False)),
        Setting(body(DATA_URL), facts=(facts(),), prompts=FakePrompts(PromptCount(40, 1, is_certain=True, raw=TEXT))),
        replace(
            SETTINGS["text"],
            body=body(cache_salt="the client's"),
            prompts=counting(TEXT),
            policies=policy_set(default="engine_fields: allow\n"),
        ),
        replace(SETTINGS["text"], prompts=counting(TEXT), views=(view("a"),)),
    ],
    ids=[
        "no tokenizer",
        "no tokens kept",
        "uncertain",
        "numbers of images differ",
        "a client's own salt",
        "one backend",
    ],
)
def test_where_the_tokens_are_not_certain_or_of_no_use_nobody_is_asked(setting: Setting) -> None:
    assert blocks_of(setting) is None


def test_what_an_engine_told_of_is_noted_with_the_decision() -> None:
    scene = SETTINGS["text"].scene()
    scene.upstream.held = {name: Holding(prefix_tokens=32, exact=True) for name in map(BackendName, "ab")}
    drive(travel(scene.client, OpenAIChat(), scene.ports, SETTINGS["text"].world()))
    assert scene.record.exact_prefix_tokens == 32
    assert asked(SETTINGS["text"]).record.exact_prefix_tokens is None
