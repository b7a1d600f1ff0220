from __future__ import annotations

import json

import pytest

from gateway.simulator import tokens
from gateway.simulator.answer import Logprobs, Sampling, ToolOffer, chosen_tool, compose, describe, example
from gateway.simulator.fields import Json
from gateway.simulator.geometry import Fitted
from gateway.simulator.prompt import Prompt
from gateway.simulator.raster import Picture, Raster


def _picture(fingerprint: str = "f") -> Picture:
    raster = Raster("jpeg", 640, 480, 1, 640, 480, (200, 10, 10), fingerprint)
    return Picture(raster, Fitted(15, 20, 1200), "id")


def _prompt(text: str = "What is it?", *pictures: Picture) -> Prompt:
    return Prompt(tuple(tokens.encode(text)), pictures=pictures, last_user_text=text)


def test_the_answer_tells_what_was_seen() -> None:
    said = describe(_prompt("What is it?", _picture()))
    assert said == "Simulated answer. I see 1 image: 640x480 (300 tokens, #c80a0a). You wrote: What is it?"
    assert describe(Prompt((1,))) == "Simulated answer."


def test_an_answer_ends_by_itself_or_at_the_limit() -> None:
    whole = compose(_prompt(), Sampling(max_tokens=1000))
    assert whole.finish_reason == "stop"
    assert whole.content == describe(_prompt())
    cut = compose(_prompt(), Sampling(max_tokens=3))
    assert (cut.finish_reason, len(cut.pieces)) == ("length", 3)
    assert whole.content.startswith(cut.content)


def test_lengths_can_be_ordered() -> None:
    assert len(compose(_prompt(), Sampling(max_tokens=200, ignore_eos=True)).pieces) == 200
    patient = compose(_prompt(), Sampling(max_tokens=200, min_tokens=50))
    assert 50 <= len(patient.pieces) <= 52
    assert patient.finish_reason == "stop"


def test_a_stop_string_ends_the_answer_before_it() -> None:
    reply = compose(_prompt(), Sampling(max_tokens=100, stop=("You",)))
    assert (reply.content, reply.stop_reason, reply.finish_reason) == ("Simulated answer. ", "You", "stop")


def test_choices_differ() -> None:
    first, second = (compose(_prompt(), Sampling(max_tokens=100), choice).content for choice in (0, 1))
    assert second == f"{first} (choice 1)"


def test_json_is_answered_when_json_is_asked_for() -> None:
    free = json.loads(compose(_prompt(), Sampling(max_tokens=100, schema={})).content)
    assert free == {"answer": describe(_prompt())}
    schema: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert json.loads(compose(_prompt(), Sampling(max_tokens=100, schema=schema)).content) == {"n": 1}


TOOLS: Json = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "read", "parameters": {}}},
]


@pytest.mark.parametrize(
    ("choice", "text", "expected"),
    [
        (None, "please call tool", "look"),
        (None, "no need", None),
        ("none", "call tool", None),
        ("required", "no need", "look"),
        ({"type": "function", "function": {"name": "read"}}, "no need", "read"),
        ({"type": "tool", "name": "read"}, "no need", "read"),
        ({"type": "any"}, "no need", "look"),
    ],
)
def test_which_tool_is_called(choice: Json, text: str, expected: str | None) -> None:
    tool = chosen_tool(TOOLS, choice, text)
    assert (tool.name if tool else None) == expected
    assert chosen_tool(None, choice, text) is None


def test_a_tool_call_carries_arguments_that_fit_its_schema() -> None:
    parameters: Json = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "array"}}}
    reply = compose(_prompt(), Sampling(max_tokens=100, tool=ToolOffer("weather", parameters)))
    assert reply.finish_reason == "tool_calls"
    assert json.loads(reply.content) == {"city": "simulated", "days": ["simulated"]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": ["b", "a"]}, "b"),
        ({"type": "number"}, 1.5),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({}, "simulated"),
    ],
)
def test_examples_fit_their_schema(schema: Json, value: Json) -> None:
    assert example(schema) == value


def test_log_probabilities_follow_from_pixels_text_and_seed() -> None:
    same = [Logprobs(_prompt("a", _picture()), 0).of(n) for n in range(4)]
    assert same == [Logprobs(_prompt("a", _picture()), 0).of(n) for n in range(4)]
    assert len(set(same)) == 4
    assert all(-2 <= value < 0 for value in same)
    for other in (
        Logprobs(_prompt("b", _picture()), 0),
        Logprobs(_prompt("a", _picture("g")), 0),
        Logprobs(_prompt("a", _picture()), 1),
    ):
        assert other.of(0) != same[0]
    assert Logprobs(_prompt(), 0).of(0, rank=1) < Logprobs(_prompt(), 0).of(0)
