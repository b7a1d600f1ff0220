"""What the engines' own tests expect of vision in their OpenAI servers, said again in our words as scenes.

vLLM 0.32 tests/entrypoints/openai/test_vision.py: single pictures by address and as base64, second turns, streams,
several pictures and one too many, picture ids, beams. SGLang 0.5.23 test/srt/test_vision_openai_server_*.py: single,
several and mixed pictures at once, second turns, constrained answers. A scene holds directly as through a proxy;
what it returns is what both ways must agree on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import openai
from openai import OpenAI
from openai.types.chat import ChatCompletion

MAX_TOKENS = 10
TOP_LOGPROBS = 5
ENGINES_IMAGE_LIMIT = 2
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Place:
    """One way to an engine. ``address`` serves ``pictures[0]`` over HTTP to whoever this way leads to."""

    client: OpenAI
    model: str
    pictures: tuple[str, ...]
    address: str

    def ask(self, *parts: str | dict[str, Any], **fields: Any) -> ChatCompletion:
        """One user message: pictures as URLs, text as it is."""
        return self.say([user(*parts)], **fields)

    def say(self, messages: list[Any], **fields: Any) -> ChatCompletion:
        settings: dict[str, Any] = {"max_completion_tokens": MAX_TOKENS, "temperature": 0, **fields}
        answer = self.client.chat.completions.create(model=self.model, messages=messages, **settings)
        assert isinstance(answer, ChatCompletion)
        return answer


def user(*parts: str | dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [_part(part) for part in parts]}


def _part(part: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(part, dict):
        return part
    if part.startswith(("data:", "http:")):
        return {"type": "image_url", "image_url": {"url": part}}
    return {"type": "text", "text": part}


def _agreed(answer: ChatCompletion) -> tuple[Any, ...]:
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    return tuple((choice.message.role, choice.message.content, choice.finish_reason) for choice in answer.choices), (
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
    )


def one_picture_as_base64(place: Place) -> object:
    answer = place.ask(place.pictures[0], "What is in it?", logprobs=True, top_logprobs=TOP_LOGPROBS)
    choice = answer.choices[0]
    assert choice.message.role == "assistant"
    assert choice.logprobs is not None
    assert choice.logprobs.content
    assert answer.usage is not None
    assert len(choice.logprobs.content) == answer.usage.completion_tokens <= MAX_TOKENS
    return _agreed(answer), choice.logprobs.content[0].logprob


def one_picture_by_address(place: Place) -> object:
    by_address = _agreed(place.ask(place.address, "What is in it?"))
    assert by_address == _agreed(place.ask(place.pictures[0], "What is in it?"))
    return by_address


def a_second_turn(place: Place) -> object:
    first = user(place.pictures[0], "What is in it?")
    answer = place.say([first])
    told = {"role": "assistant", "content": answer.choices[0].message.content or "-"}
    return _agreed(answer), _agreed(place.say([first, told, user("Say it in JSON")]))


def a_stream_says_what_the_whole_says(place: Place) -> object:
    whole = place.ask(place.pictures[0], "What is in it?")
    messages: Any = [user(place.pictures[0], "What is in it?")]
    stream = place.client.chat.completions.create(
        model=place.model, messages=messages, max_completion_tokens=MAX_TOKENS, temperature=0, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    chunks = list(stream)
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    text = "".join(choice.delta.content or "" for choice in choices)
    assert choices[0].delta.role == "assistant"
    assert text == whole.choices[0].message.content
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == [whole.choices[0].finish_reason]
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    assert choices[-1].finish_reason
    # Not the number of events: vLLM joins what waits for a front end that is late.
    return text, chunks[-1].usage.completion_tokens


def several_pictures_and_one_too_many(place: Place) -> object:
    allowed = _agreed(place.ask(*place.pictures[:ENGINES_IMAGE_LIMIT], "Which is larger?"))
    try:
        place.ask(*place.pictures[: ENGINES_IMAGE_LIMIT + 1], "Which is largest?")
    except openai.BadRequestError as error:
        status = error.status_code
    else:
        raise AssertionError("one picture too many was taken")
    return allowed, status, _agreed(place.ask("Still there?"))


def text_and_pictures_in_any_order_and_role(place: Place) -> object:
    between = place.ask("First", place.pictures[0], "then", place.pictures[1], "differ?")
    system = place.say([{"role": "system", "content": "Be brief."}, user(place.pictures[0], "Well?")])
    return _agreed(between), _agreed(system)


def several_choices(place: Place) -> object:
    """Drawn, since of the likeliest there is but one: what they say is chance, how many and at what price is not."""
    answer = place.ask(place.pictures[0], "What is in it?", n=2, temperature=0.8, seed=7)
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage is not None
    return answer.usage.prompt_tokens


def details(place: Place) -> object:
    def of(detail: str) -> object:
        part = {"type": "image_url", "image_url": {"url": place.pictures[0], "detail": detail}}
        return _agreed(place.ask(part, "Well?"))

    return of("auto"), of("low"), of("high")


def constrained_answers(place: Place) -> object:
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
    answer = place.ask(place.pictures[0], "Where?", response_format=form, max_completion_tokens=400)
    text = answer.choices[0].message.content or ""
    if answer.choices[0].finish_reason == "stop":
        assert set(json.loads(text)) == {"city", "days"}
    return text


def mixed_requests_at_once(place: Place) -> object:
    """None to two pictures each, all in flight together; each answer belongs to its own question."""
    with ThreadPoolExecutor(6) as pool:
        answers = pool.map(lambda n: place.ask(*place.pictures[: n % 3], f"number {n}"), range(6))
        return [_agreed(answer) for answer in answers]


def a_picture_that_is_none(place: Place) -> object:
    try:
        place.ask("data:image/jpeg;base64,bm8gcGljdHVyZQ==", "What is in it?")
    except openai.APIStatusError:  # each engine, and the gateway, has a status of its own for it
        return "refused"
    raise AssertionError("taken for a picture")


def a_missing_picture(place: Place) -> object:
    try:
        place.ask({"type": "image_url", "image_url": None}, "What is in it?")
    except openai.BadRequestError as error:
        return error.status_code
    raise AssertionError("taken for a picture")


def an_id_that_was_never_seen(place: Place) -> object:
    """An id alone is a picture only where the server has it."""
    try:
        place.ask({"type": "image_url", "image_url": None, "uuid": "0123456789abcdef"}, "What is in it?")
    except openai.BadRequestError as error:
        return error.status_code
    raise AssertionError("taken for a picture")


def a_picture_with_an_id(place: Place) -> object:
    """The id changes nothing of the answer, whatever form it has."""
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": place.pictures[0]}, "uuid": "a-client's-own"}
    with_id, without = place.ask(part, "What is in it?"), place.ask(place.pictures[0], "What is in it?")
    assert _agreed(with_id) == _agreed(without)
    return _agreed(without)


Scene = Callable[[Place], object]
# vLLM's beam search has no deterministic twin in the simulator; it is played on the real engine only.
SCENES: tuple[Scene, ...] = (
    one_picture_as_base64, one_picture_by_address, a_second_turn, a_stream_says_what_the_whole_says,
    several_pictures_and_one_too_many, text_and_pictures_in_any_order_and_role, several_choices, details,
    constrained_answers, mixed_requests_at_once, a_picture_that_is_none, a_missing_picture,
)  # fmt: skip
VLLM_SCENES: tuple[Scene, ...] = (an_id_that_was_never_seen, a_picture_with_an_id)


def beams(place: Place) -> object:
    answer = place.ask(
        place.pictures[0], "What is in it?", n=2, logprobs=False, extra_body={"use_beam_search": True}, temperature=0
    )
    assert len(answer.choices) == 2
    return _agreed(answer)
