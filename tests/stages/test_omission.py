"""Images that are left out: what takes their places, in the call, in the tree, in the body."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.dialects.anthropic_messages import AnthropicMessages
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.policy.effective import Excess, History, Mode, OnExcess
from gateway.stages.omission import MARKER, leave_out, within_count
from tests.policy.examples import call, policy

DROP = policy(max_images=1, on_excess=OnExcess(max_images=Excess.DROP_OLDEST))
URL = "https://img.example/a.png"


def test_nothing_to_leave_out_is_the_call_itself() -> None:
    asked = call()
    assert within_count(DROP, asked, {}) is asked
    assert leave_out(asked, (), {}) is asked


def test_the_text_stands_in_the_tree_and_fields_of_the_part_are_forgotten() -> None:
    parts: list[Any] = [
        {"type": "input_image", "image_url": URL, "uuid": "x"},
        {"type": "input_image", "image_url": URL},
    ]
    tree: dict[str, Any] = {"model": "m", "priority": 3, "input": [{"role": "user", "content": parts}]}
    asked = OpenAIResponses().read(tree)
    left = within_count(DROP, asked, tree)
    assert [image.name for image in left.omitted] == ["input.0.content.0.image_url"]
    assert left.images == asked.images[1:]
    assert left.foreign_fields == (("priority",),)
    assert left.text_bytes == asked.text_bytes + len(MARKER)
    assert parts[0] == {"type": "input_text", "text": MARKER}
    assert OpenAIResponses().read(tree).text_bytes == left.text_bytes


def test_shadow_mode_leaves_all() -> None:
    block = {"type": "image", "source": {"type": "url", "url": URL}}
    tree: dict[str, Any] = {"messages": [{"role": "user", "content": [block, dict(block)]}]}
    asked = AnthropicMessages().read(tree)
    shadow = policy(max_images=1, on_excess=OnExcess(max_images=Excess.DROP_OLDEST), mode=Mode.SHADOW)
    assert within_count(shadow, asked, tree) is asked
    assert MARKER not in json.dumps(tree)
    left = within_count(DROP, asked, tree)
    assert tree["messages"][0]["content"][0] == {"type": "text", "text": MARKER}
    assert len(left.images) == 1


HISTORY = policy(history=History(images=6, batch=3, keep_newest=2))


def _chat(turns: int) -> tuple[Any, Any]:
    turn = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}
    return OpenAIChat(), {"model": "m", "messages": [copy.deepcopy(turn) for _ in range(turns)]}


def _responses(turns: int) -> tuple[Any, Any]:
    turn = {"role": "user", "content": [{"type": "input_image", "image_url": URL}]}
    return OpenAIResponses(), {"model": "m", "input": [copy.deepcopy(turn) for _ in range(turns)]}


def _messages(turns: int) -> tuple[Any, Any]:
    image = {"type": "image", "source": {"type": "url", "url": URL}}
    turn = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]}
    return AnthropicMessages(), {"model": "m", "messages": [copy.deepcopy(turn) for _ in range(turns)]}


@pytest.mark.parametrize("conversation", [_chat, _responses, _messages])
def test_a_growing_conversation_begins_as_it_did_but_once_in_a_batch(
    conversation: Callable[[int], tuple[Any, Any]],
) -> None:
    told: list[Any] = []
    broken: list[int] = []
    for turns in range(1, 16):
        dialect, tree = conversation(turns)
        left = within_count(HISTORY, dialect.read(tree), tree)
        now = tree.get("messages") or tree["input"]
        assert 2 <= len(left.images) <= 6 or turns < 2
        assert len(dialect.read(tree).images) == len(left.images)
        if now[: len(told)] != told:
            broken.append(turns)
        told = now
    assert broken == [7, 10, 13]
