"""Answers changed on their way: who may ask for what, and that however bytes are cut the client gets the same."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects import Dialect
from gateway.dialects.anthropic_messages import AnthropicMessages
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.errors import InvalidRequest
from gateway.models.book import ModelBook, ServedModel
from gateway.models.catalog import shipped_catalog
from gateway.models.grounding import CoordinateForm, Frame
from gateway.policy.effective import Coordinates, Disclosure
from gateway.record import RequestHead
from gateway.stages.answer import AnswerEditor, Wish, editor_for, told_coordinates, wish_of
from gateway.types import Change, ImagePlan, OutputFormat, RequestId, Size
from tests.policy.examples import call, part, policy

TEN = Frame(CoordinateForm.ABSOLUTE, Size(100, 100), Size(1_000, 1_000))
BOX = '[{"bbox_2d": [1, 2, 3, 4], "label": "é"}]'
MAPPED = BOX.replace("1, 2, 3, 4", "10, 20, 30, 40")
MAP = Wish(TEN, None)
MEMBER = b'{"images": []}'


def served(model: str) -> ServedModel:
    return ModelBook(shipped_catalog(), {}).serve(model, ())


def plan(original: Size, target: Size, model: ServedModel) -> ImagePlan:
    before, after = (model.family.image_tokens(size, model.checkpoint) for size in (original, target))
    return ImagePlan(original, target, (Change.RESIZED,), OutputFormat.AUTO, 95, (255, 255, 255), "v", before, after)


def head(**headers: str) -> RequestHead:
    named = tuple((f"x-vlmgw-{name}", value) for name, value in headers.items())
    return RequestHead("POST", "/v1/chat/completions", "", named, None, RequestId("r"))


PHOTO, SENT = Size(4032, 3024), Size(1344, 1008)


def wished(model: str, *targets: Size, rules: dict[str, Any] | None = None, **headers: str) -> Wish | None:
    of = served(model)
    plans = [plan(PHOTO, target, of) for target in targets]
    request = call(*(part(index) for index in range(len(plans))))
    return wish_of(policy(**(rules or {})), head(**headers), of, request, plans)


def test_nobody_asks_for_nothing() -> None:
    assert wished("Qwen/Qwen2.5-VL-7B-Instruct", SENT) is None
    assert wished("Qwen/Qwen2.5-VL-7B-Instruct", coordinates="original") is None, "no image, no coordinates"


def test_absolute_coordinates_are_those_of_the_raster_that_the_model_sees() -> None:
    found = wished("Qwen/Qwen2.5-VL-7B-Instruct", SENT, coordinates="original")
    assert found == Wish(Frame(CoordinateForm.ABSOLUTE, Size(1344, 1008), PHOTO), None)
    untouched = wished("Qwen/Qwen2.5-VL-7B-Instruct", Size(1000, 700), coordinates="Original")
    assert untouched is not None
    assert untouched.frame is not None
    assert untouched.frame.space == Size(1008, 700), "the engine rounds to its own grid"


def test_thousandths_are_those_of_any_size() -> None:
    found = wished("Qwen/Qwen3-VL-8B-Instruct", SENT, rules={"answer_coordinates": Coordinates.ORIGINAL})
    assert found is not None
    assert found.frame == Frame(CoordinateForm.THOUSANDTHS, Size(1000, 1000), PHOTO)
    rules = {"answer_coordinates": Coordinates.ORIGINAL}
    assert wished("Qwen/Qwen3-VL-8B-Instruct", SENT, rules=rules, coordinates="model") is None


def test_what_cannot_be_taken_back_is_refused_and_named() -> None:
    with pytest.raises(InvalidRequest, match="not documented") as refused:
        wished("OpenGVLab/InternVL2-8B", SENT, coordinates="original")
    assert refused.value.rule == "answer_coordinates"
    with pytest.raises(InvalidRequest, match="one geometry"):
        wished("Qwen/Qwen2.5-VL-7B-Instruct", SENT, Size(672, 504), coordinates="original")
    assert wished("Qwen/Qwen2.5-VL-7B-Instruct", SENT, SENT, coordinates="original") is not None
    with pytest.raises(InvalidRequest, match="The header x-vlmgw-coordinates must be one of: model, original"):
        wished("Qwen/Qwen2.5-VL-7B-Instruct", SENT, coordinates="mine")
    with pytest.raises(InvalidRequest, match="headers, body"):
        wished("Qwen/Qwen2.5-VL-7B-Instruct", SENT, disclosure="yes")


def test_the_body_tells_every_images_geometry() -> None:
    found = wished("Qwen/Qwen2.5-VL-7B-Instruct", SENT, rules={"disclosure": Disclosure.BODY})
    assert found is not None
    assert found.member is not None
    told = json.loads(found.member)
    assert told["coordinates"] == "absolute"
    (image,) = told["images"]
    assert (image["original"], image["delivered"], image["offset"]) == ([4032, 3024], [1344, 1008], [0, 0])
    assert image["scale"] == [0.333333, 0.333333]
    assert image["tokens"] == 48 * 36
    assert image["tokens_original"] > image["tokens"]


def event(tree: object, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(tree).encode() + b"\n\n"


def chat_chunk(content: str | None, finish: str | None = None, index: int = 0) -> bytes:
    return event({"choices": [{"index": index, "delta": {"content": content}, "finish_reason": finish}], "n": 1.0e2})


def chat_texts(stream: bytes, index: int = 0) -> str:
    events = [json.loads(line[6:]) for line in stream.split(b"\n") if line.startswith(b"data: {")]
    choices = [choice for tree in events for choice in tree["choices"] if choice["index"] == index]
    return "".join(choice["delta"]["content"] or "" for choice in choices)


def through(wish: Wish, dialect: Dialect, pieces: list[bytes], *, streamed: bool = True) -> bytes:
    editor = AnswerEditor(wish, dialect, streamed=streamed)
    return b"".join([*map(editor.feed, pieces), editor.finish()])


def cut_at(whole: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    return [whole[start:stop] for start, stop in itertools.pairwise(places)]


@given(st.lists(st.integers(0, 10_000), max_size=12), st.integers(1, 9))
def test_a_stream_is_mapped_however_it_is_cut(cuts: list[int], step: int) -> None:
    pieces = [BOX[at : at + step] for at in range(0, len(BOX), step)]
    done = b": ping\n\ndata: [DONE]\n\n"
    stream = b"".join(chat_chunk(piece) for piece in pieces) + chat_chunk(None, "stop") + done
    told = through(MAP, OpenAIChat(), cut_at(stream, cuts))
    assert chat_texts(told) == MAPPED
    assert told.endswith(done)
    assert told.count(b'"n": 100.0') >= len(pieces), "all else stays as it came"


def test_events_without_coordinates_stay_byte_for_byte() -> None:
    stream = chat_chunk("Ein Kätzchen.").replace(b", ", b" ,  ") + b"data: {odd\r\n\r\ndata: 1\ndata: 2\n\nid: 5\n\n"
    assert through(MAP, OpenAIChat(), [stream]) == stream


@pytest.mark.parametrize("ending", [chat_chunk(None, "length"), b"data: [DONE]\n\n", b""])
def test_what_waits_at_the_end_is_not_lost(ending: bytes) -> None:
    told = through(MAP, OpenAIChat(), [chat_chunk('{"bbox_2d": [1, 2'), ending])
    assert chat_texts(told) == '{"bbox_2d": [1, 2'
    assert told.endswith(ending)


def test_the_last_piece_may_come_with_the_end() -> None:
    told = through(MAP, OpenAIChat(), [chat_chunk('"point_2d": [1,'), chat_chunk("2", "stop")])
    assert chat_texts(told) == '"point_2d": [1,2'


def test_choices_wait_apart() -> None:
    stream = [chat_chunk('"point_2d": [1', index=0), chat_chunk("plain", index=1), chat_chunk(",2]", "stop", index=0)]
    told = through(MAP, OpenAIChat(), stream)
    assert chat_texts(told, 0) == '"point_2d": [10,20]'
    assert chat_texts(told, 1) == "plain"


ARGUMENTS = '{"bbox_2d": [1, 2, 3, 4]}'
MAPPED_ARGUMENTS = '{"bbox_2d": [10, 20, 30, 40]}'


def call_chunk(arguments: str, name: str | None = None) -> bytes:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    entry = {"index": 1, "function": function, **({"id": "call-1", "type": "function"} if name else {})}
    return event({"choices": [{"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": None}]})


def called(stream: bytes) -> dict[str, str]:
    """A call's fields as clients put them together."""
    joined = {"id": "", "name": "", "arguments": ""}
    for line in stream.split(b"\n"):
        for choice in json.loads(line[6:])["choices"] if line.startswith(b"data: {") else ():
            for entry in choice["delta"].get("tool_calls", ()):
                joined["id"] += entry.get("id", "")
                joined["name"] += entry["function"].get("name", "")
                joined["arguments"] += entry["function"]["arguments"]
    return joined


@given(st.lists(st.integers(0, 10_000), max_size=12), st.integers(1, 9))
def test_arguments_of_calls_are_mapped_too(cuts: list[int], step: int) -> None:
    pieces = [ARGUMENTS[at : at + step] for at in range(0, len(ARGUMENTS), step)]
    stream = call_chunk("", "mark") + b"".join(map(call_chunk, pieces)) + chat_chunk(None, "tool_calls")
    told = called(through(MAP, OpenAIChat(), cut_at(stream, cuts)))
    assert told == {"id": "call-1", "name": "mark", "arguments": MAPPED_ARGUMENTS}


def test_a_call_cut_short_is_told_once() -> None:
    told = through(MAP, OpenAIChat(), [call_chunk(ARGUMENTS[:18], "mark"), chat_chunk(None, "length")])
    assert called(told) == {"id": "call-1", "name": "mark", "arguments": ARGUMENTS[:18]}


def test_whole_calls_and_thoughts_are_mapped_in_every_api() -> None:
    call_ = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}
    chat = {"choices": [{"message": {"content": None, "reasoning": BOX, "tool_calls": [call_]}}]}
    (told,) = json.loads(through(MAP, OpenAIChat(), [json.dumps(chat).encode()], streamed=False))["choices"]
    assert told["message"]["tool_calls"][0]["function"]["arguments"] == MAPPED_ARGUMENTS
    assert told["message"]["reasoning"] == MAPPED
    blocks = [{"type": "thinking", "thinking": BOX}, {"type": "tool_use", "input": json.loads(ARGUMENTS), "id": "t"}]
    body = json.dumps({"type": "message", "content": blocks}).encode()
    content = json.loads(through(MAP, AnthropicMessages(), [body], streamed=False))["content"]
    assert (content[0]["thinking"], content[1]["input"]) == (MAPPED, json.loads(MAPPED_ARGUMENTS))
    items = [{"type": "function_call", "arguments": ARGUMENTS, "call_id": "c"}]
    items.append({"type": "reasoning", "content": [{"type": "reasoning_text", "text": BOX}]})  # type: ignore[dict-item] # of any JSON
    output = json.loads(through(MAP, OpenAIResponses(), [json.dumps({"output": items}).encode()], streamed=False))
    assert output["output"][0]["arguments"] == MAPPED_ARGUMENTS
    assert output["output"][1]["content"][0]["text"] == MAPPED


def test_streamed_calls_are_mapped_in_every_api() -> None:
    pieces = [
        event({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": piece}})
        for piece in (ARGUMENTS[:15], ARGUMENTS[15:])
    ]
    stop = event({"type": "content_block_stop", "index": 2})
    told = through(MAP, AnthropicMessages(), [*pieces, stop])
    events = [json.loads(line[6:]) for line in told.split(b"\n") if line.startswith(b"data: ")]
    assert "".join(each["delta"]["partial_json"] for each in events[:-1]) == MAPPED_ARGUMENTS
    kind = "response.function_call_arguments"
    pieces = [
        event({"type": f"{kind}.delta", "output_index": 1, "delta": ARGUMENTS[:15]}),
        event({"type": f"{kind}.delta", "output_index": 1, "delta": ARGUMENTS[15:]}),
        event({"type": f"{kind}.done", "output_index": 1, "arguments": ARGUMENTS}),
        event({"type": "response.output_item.done", "item": {"type": "function_call", "arguments": ARGUMENTS}}),
    ]
    told = through(MAP, OpenAIResponses(), pieces)
    events = [json.loads(line[6:]) for line in told.split(b"\n") if line.startswith(b"data: ")]
    assert "".join(each.get("delta", "") for each in events) == MAPPED_ARGUMENTS
    assert events[-2]["arguments"] == events[-1]["item"]["arguments"] == MAPPED_ARGUMENTS


@given(st.lists(st.integers(0, 2_000), max_size=6))
def test_a_whole_answer_is_mapped_and_told(cuts: list[int]) -> None:
    long = "x" * 3_000
    body = json.dumps({"id": 1, "choices": [{"index": 0, "message": {"content": BOX + long}, "finish_reason": "stop"}]})
    told = through(Wish(TEN, MEMBER), OpenAIChat(), cut_at(body.encode(), cuts), streamed=False)
    tree = json.loads(told)
    assert tree["choices"][0]["message"]["content"] == MAPPED + long
    assert tree["vlmgw"] == {"images": []}


def test_the_first_event_tells() -> None:
    told = through(Wish(None, MEMBER), OpenAIChat(), [b": hello\n\n" + chat_chunk("a") + chat_chunk("b")])
    assert told.count(b'"vlmgw":{"images": []}') == 1
    assert told.index(b"vlmgw") < told.index(b'"b"')


def test_messages_are_mapped() -> None:
    def delta(text: str) -> bytes:
        tree = {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}}
        return event(tree, "content_block_delta")

    stop = event({"type": "content_block_stop", "index": 1}, "content_block_stop")
    told = through(MAP, AnthropicMessages(), [delta(BOX[:20]), delta(BOX[20:]), delta("<points"), stop])
    events = [json.loads(line[6:]) for line in told.split(b"\n") if line.startswith(b"data: ")]
    assert "".join(tree["delta"]["text"] for tree in events if "delta" in tree) == MAPPED + "<points"
    assert events[-1]["type"] == "content_block_stop"
    body = json.dumps(
        {"type": "message", "content": [{"type": "text", "text": BOX}, {"type": "tool_use", "input": {}}]}
    )
    assert (
        json.loads(through(MAP, AnthropicMessages(), [body.encode()], streamed=False))["content"][0]["text"] == MAPPED
    )


def test_responses_are_mapped_wherever_the_text_is_told_again() -> None:
    content = [{"type": "output_text", "text": BOX}]
    output = [{"type": "reasoning"}, {"type": "message", "content": content}]
    stream = [
        event({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": BOX[:20]}),
        event({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": BOX[20:]}),
        event({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": BOX}),
        event({"type": "response.content_part.done", "part": content[0]}),
        event({"type": "response.output_item.done", "item": output[1]}),
        event({"type": "response.completed", "response": {"output": output}}),
    ]
    told = through(MAP, OpenAIResponses(), stream)
    trees = [json.loads(line[6:]) for line in told.split(b"\n") if line.startswith(b"data: ")]
    assert "".join(tree.get("delta", "") for tree in trees) == MAPPED
    assert trees[-4]["text"] == trees[-3]["part"]["text"] == trees[-2]["item"]["content"][0]["text"] == MAPPED
    assert trees[-1]["response"]["output"][1]["content"][0]["text"] == MAPPED
    whole = through(MAP, OpenAIResponses(), [json.dumps({"output": output}).encode()], streamed=False)
    assert json.loads(whole)["output"][1]["content"][0]["text"] == MAPPED


@pytest.mark.parametrize("body", [b"", b"[1, 2]", b"not json", b'{"choices": [null, {"message": 5}, {"delta": {}}]}'])
def test_what_is_no_answer_passes(body: bytes) -> None:
    assert through(MAP, OpenAIChat(), [body], streamed=False) == body


def test_what_is_too_long_to_be_kept_passes() -> None:
    piece = b"x" * (1 << 20)
    assert through(MAP, OpenAIChat(), [b"data: "] + [piece] * 18) == b"data: " + piece * 18


JSON = ("Content-Type", "application/json; charset=utf-8")


@pytest.mark.parametrize(
    ("wish", "status", "headers", "edits"),
    [
        (MAP, 200, (JSON,), True),
        (MAP, 200, (("content-type", "text/event-stream"),), True),
        (MAP, 200, (JSON, ("Content-Encoding", "gzip")), False),
        (MAP, 400, (JSON,), False),
        (MAP, 200, (("content-type", "text/plain"),), False),
        (MAP, 200, (), False),
        (None, 200, (JSON,), False),
    ],
)
def test_only_what_can_be_read_is_edited(
    wish: Wish | None, status: int, headers: tuple[tuple[str, str], ...], edits: bool
) -> None:
    editor = editor_for(wish, OpenAIChat(), status, headers)
    assert (editor is not None) == edits
    assert told_coordinates(wish, editor) == (None if wish is None else "original" if edits else "model")


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"choices": [], "usage": {"prompt_tokens": 1}}, ("usage",)),
        ({"type": "response.completed", "response": {"usage": {"input_tokens": 1}}}, ("response", "usage")),
        ({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}, ("message", "usage")),
    ],
)
def test_sums_are_told_in_the_usage_wherever_it_stands(told: dict[str, Any], place: tuple[str, ...]) -> None:
    editor = AnswerEditor(Wish(None, b'{"image_tokens":4}', is_in_usage=True), OpenAIChat(), streamed=True)
    first = b'data: {"choices":[{"index":0,"delta":{}}],"usage":null}\n\n'
    out = editor.feed(first + b"data: " + json.dumps(told).encode() + b"\n\n") + editor.finish()
    assert out.startswith(first)
    found = json.loads(out[len(first) :].removeprefix(b"data: "))
    for step in place:
        found = found[step]
    assert found["vlmgw"] == {"image_tokens": 4}
