"""What a template is given of a request: the shapes that vLLM makes, and never an image's source."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.prompts.conversation import NotCountable, conversation
from gateway.types import LongString, Span

LONG = LongString(Span(0, 10), has_escapes=False)
IMAGE = {"type": "image_url", "image_url": {"url": LongString(Span(0, 10**6), has_escapes=False, is_data_url=True)}}


def resolve(long: LongString) -> str:
    assert not long.is_data_url, "an image's source is never read"
    return "a long text"


def read(tree: dict[str, Any], *, takes_parts: bool = True) -> Any:
    return conversation(tree, resolve, takes_parts=takes_parts)


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}], **more}


def test_every_content_becomes_parts() -> None:
    text = {"type": "text", "text": "hello"}
    assert read(user("hello")).messages == [{"role": "user", "content": [text]}]
    assert read(user([text, "hello"])).messages[0]["content"] == [text, text]
    assert read(user(None)).messages[0]["content"] == []
    assert read(user([{"type": "input_text", "text": LONG}])).messages[0]["content"] == [
        {"type": "text", "text": "a long text"}
    ]


def test_images_are_counted_and_never_looked_at() -> None:
    spoken = read(user([IMAGE, {"type": "text", "text": "and"}, {"image_url": "https://example.org/a.png"}]))
    assert spoken.images == 2
    assert [part["type"] for part in spoken.messages[0]["content"]] == ["image", "text", "image"]


def test_templates_of_strings_get_joined_text_and_no_images() -> None:
    spoken = read(user([{"type": "text", "text": "a"}, "b"]), takes_parts=False)
    assert spoken.messages[0]["content"] == "a\nb"
    with pytest.raises(NotCountable):
        read(user([IMAGE]), takes_parts=False)


def test_tools_make_a_count_uncertain() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": LONG}}
    spoken = read(user("x", tools=[tool]))
    assert spoken.tools == [{"type": "function", "function": {"name": "f", "description": "a long text"}}]
    assert not spoken.is_certain
    assert read(user("x", tools=[])).is_certain
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    answered = read({"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]})
    assert answered.messages[0]["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert not answered.is_certain


def test_the_requests_own_variables_reach_the_template() -> None:
    spoken = read(user("x", chat_template_kwargs={"enable_thinking": False}, add_generation_prompt=False))
    assert spoken.variables == {"enable_thinking": False, "add_generation_prompt": False}
    assert read(user("x", reasoning_effort="low")).variables == {"reasoning_effort": "low"}


@pytest.mark.parametrize(
    "tree",
    [
        user("x", chat_template="{{ messages }}"),
        user("x", documents=[{}]),
        user("x", continue_final_message=True),
        user([{"type": "input_audio", "input_audio": {}}]),
        user([{"type": "video_url", "video_url": {"url": "x"}}]),
        user([{"type": "text", "text": None}]),
        user([7]),
        {"messages": [None]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]},
    ],
)
def test_what_only_the_engine_knows_is_not_counted(tree: dict[str, Any]) -> None:
    with pytest.raises(NotCountable):
        read(tree)
