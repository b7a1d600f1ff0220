"""Ids for engines: which images get one, and how it is written beside or in place of the bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.dialects import DIALECTS
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.dialects.sglang_generate import SglangGenerate
from gateway.policy.effective import EffectivePolicy, EngineFields, FieldAction, ImageScope, Mode
from gateway.record import ExchangeRecord
from gateway.splice.edit import edit, splice
from gateway.splice.skeleton import cut
from gateway.stages.identities import Marks, hashes, image_ids
from gateway.stages.outgoing import edits_of
from gateway.types import (
    Call,
    Change,
    ContentDigest,
    EngineKind,
    Fidelity,
    ImageFormat,
    ImagePart,
    ImagePlan,
    ImageTokens,
    OutputFormat,
    Prepared,
    RequestId,
    Size,
)
from tests.journey.fakes import facts
from tests.policy.examples import policy

URL = "data:image/png;base64,AAAA"
MADE = Prepared(b"data:image/png;base64,AA==", Size(1, 1), ImageFormat.PNG, 1, bytes(31) + b"\xff")
HASH = "sha256:" + "00" * 31 + "ff"
PRICE = ImageTokens(1, 0, 2, (1, 2, 2), 1, 4)
PLAN = ImagePlan(
    Size(100, 80), Size(64, 64), (Change.RESIZED,), OutputFormat.AUTO, 90, (255, 255, 255), "codec-1", PRICE, PRICE
)
CHAT: Any = {
    "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL, "detail": "low"}}]}]
}


def identify(scope: Sequence[str], content: ContentDigest, picture: str) -> str:
    return f"{'+'.join(scope)}:{content[0]}:{picture}"


def ids_of(call: Call, effective: EffectivePolicy | None = None, plan: ImagePlan = PLAN) -> tuple[str | None, ...]:
    known = [facts(number=number) for number, _ in enumerate(call.images)]
    return image_ids(identify, effective or policy(), call, known, [plan] * len(call.images))


def written(body: Any, call: Call, marks: Marks, *made: tuple[ImagePart, Prepared]) -> Any:
    """The body as it leaves."""
    data = json.dumps(body).encode()
    kept = ExchangeRecord(RequestId("r"), "d", "/", 0.0)
    operations = edits_of(call, policy(model=call.model), marks, made, lambda *_: "", kept)
    spliced = splice(
        lambda start, stop: memoryview(data)[start:stop], 0, len(data), edit(cut(data, 0, len(data)), operations)
    )
    return json.loads(b"".join(bytes(chunk) for chunk in spliced.chunks))


def chat_part(part: dict[str, Any]) -> tuple[dict[str, Any], Call]:
    body: Any = {"messages": [{"role": "user", "content": [part, {"type": "text", "text": "?"}]}]}
    return body, OpenAIChat().read(body)


def test_every_image_of_chat_has_one_by_tenant_file_and_picture() -> None:
    call = OpenAIChat().read(CHAT)
    assert ids_of(call) == (f"default:0:{PLAN.picture}",)
    assert ids_of(replace(call, user="u"), policy(image_ids=ImageScope.USER)) == (f"default+u:0:{PLAN.picture}",)
    assert ids_of(call, policy(image_ids=ImageScope.USER)) == (f"default+:0:{PLAN.picture}",)
    assert ids_of(call, policy(image_ids=ImageScope.ALL)) == (f":0:{PLAN.picture}",)
    assert ids_of(call, policy(mode=Mode.SHADOW)) == ()
    assert ids_of(replace(call, images=())) == ()


def test_a_picture_is_another_one_whenever_its_bytes_could_be() -> None:
    others = [
        replace(PLAN, target=Size(64, 32)),
        replace(PLAN, version="codec-2"),
        replace(PLAN, jpeg_quality=91),
        replace(PLAN, output=OutputFormat.PNG),
        replace(PLAN, background=(0, 0, 0)),
        replace(PLAN, frame=1),
        replace(PLAN, changes=(Change.RESIZED, Change.PROFILE)),
        replace(PLAN, fidelity=Fidelity.FAST),
        replace(PLAN, changes=()),
    ]
    assert len({plan.picture for plan in [PLAN, *others]}) == len(others) + 1
    # Prices and the original's size follow from the file and the plan, and change no byte.
    assert replace(PLAN, before=replace(PRICE, tokens=9)).picture == PLAN.picture
    as_it_came = {replace(PLAN, changes=changes).picture for changes in ((), (Change.DATA_URL,), (Change.REMOTE,))}
    assert as_it_came == {"file"}


@pytest.mark.parametrize("action", [FieldAction.STRIP, FieldAction.REJECT, FieldAction.ALLOW])
def test_a_clients_own_is_never_trusted_unless_the_operator_says_so(action: FieldAction) -> None:
    _, call = chat_part({"type": "image_url", "image_url": {"url": URL}, "uuid": "theirs"})
    (found,) = ids_of(call, policy(engine_fields=EngineFields(action)))
    assert (found is None) is (action is FieldAction.ALLOW)


def test_only_where_the_engine_reads_it() -> None:
    shot = {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": URL}}
    returned = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": URL}]}
    message = {"role": "user", "content": [{"type": "input_image", "image_url": URL}]}
    items: list[Any] = [shot, returned, message]
    call = OpenAIResponses().read({"input": items})
    assert [image_id is not None for image_id in ids_of(call)] == [False, False, True]
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    messages: Any = {"max_tokens": 1, "messages": [{"role": "user", "content": [block]}]}
    anthropic = next(dialect for dialect in DIALECTS if dialect.name == "anthropic_messages")
    assert ids_of(anthropic.read(messages)) == ()


VLLM = Marks(EngineKind.VLLM, ("ours",))
ALONE = Marks(EngineKind.VLLM, ("ours",), frozenset({0}))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": URL}, "uuid": "theirs", "x": 1},
        {"type": "image_url", "image_url": {"url": URL, "content_hash": "theirs", "max_dynamic_patch": 9}},
        {"type": "image_url", "image_url": URL},
        {"image_url": URL},
        {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 4000},
    ],
)
def test_beside_the_bytes_and_instead_of_them(part: dict[str, Any]) -> None:
    body, call = chat_part(part)
    for made in ((), ((call.images[0], MADE),)):
        found, text = written(body, call, VLLM, *made)["messages"][0]["content"]
        assert (found["type"], found["uuid"], text["text"]) == ("image_url", "ours", "?")
        url = found["image_url"]["url"]
        assert url == (MADE.data_url.decode() if made else call_source(part))
        found, _ = written(body, call, ALONE, *made)["messages"][0]["content"]
        assert found == {"type": "image_url", "image_url": None, "uuid": "ours"} | ({"x": 1} if "x" in part else {})


def call_source(part: dict[str, Any]) -> Any:
    given = part["image_url"]
    return given["url"] if isinstance(given, dict) else given


def test_in_responses_too() -> None:
    body: Any = {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL, "detail": "auto"}]}]}
    call = OpenAIResponses().read(body)
    (found,) = written(body, call, VLLM)["input"][0]["content"]
    assert found == {"type": "input_image", "image_url": URL, "detail": "auto", "uuid": "ours"}
    (found,) = written(body, call, ALONE)["input"][0]["content"]
    assert found == {"type": "input_image", "image_url": None, "detail": "auto", "uuid": "ours"}


def test_further_frames_have_their_own() -> None:
    for body, call in (
        chat_part({"type": "image_url", "image_url": {"url": URL}}),
        chat_part({"type": "image_url", "image_url": URL}),
    ):
        first = call.images[0]
        two = replace(call, images=(first, replace(first, frame=1)))
        made = [(image, MADE) for image in two.images]
        parts = written(body, two, Marks(EngineKind.VLLM, ("a", "b")), *made)["messages"][0]["content"]
        assert [part.get("uuid") for part in parts] == ["a", "b", None]
        both = Marks(EngineKind.VLLM, ("a", "b"), frozenset({0, 1}))
        parts = written(body, two, both)["messages"][0]["content"]
        assert parts[:2] == [{"type": "image_url", "image_url": None, "uuid": name} for name in "ab"]
        parts = written(body, two, Marks(EngineKind.SGLANG, ("a", "b")), *made)["messages"][0]["content"]
        assert [part["image_url"]["content_hash"] for part in parts[:2]] == [HASH, HASH]


def test_sglang_gets_the_hash_of_what_was_prepared_and_no_id() -> None:
    marks = Marks(EngineKind.SGLANG, ("ours",))
    for part in ({"type": "image_url", "image_url": {"url": URL, "content_hash": "x"}}, {"image_url": URL}):
        body, call = chat_part(part)
        found = written(body, call, marks, (call.images[0], MADE))["messages"][0]["content"][0]
        assert found == {"type": "image_url", "image_url": {"url": MADE.data_url.decode(), "content_hash": HASH}}
        unhashed = replace(MADE, file_sha256=None)
        for made in ((), ((call.images[0], unhashed),)):
            found = written(body, call, marks, *made)["messages"][0]["content"][0]
            assert set(found) == {"type", "image_url"}
            assert set(found["image_url"]) == {"url"}


def test_sglangs_generate_gets_a_hash_of_every_image() -> None:
    body: Any = {"text": "<image><image>?", "image_data": [URL, {"url": URL}], "mm_hashes": ["theirs"]}
    call = SglangGenerate().read(body)
    ids = image_ids(lambda *_: "0123456789abcdef" * 2, policy(), call, [facts()] * 2, [PLAN] * 2)
    found = written(body, call, Marks(EngineKind.SGLANG, ids))
    assert found == body | {"mm_hashes": ["0123456789abcdef"] * 2}
    allowed = policy(engine_fields=EngineFields(FieldAction.ALLOW))
    assert hashes(call, allowed, Marks(EngineKind.SGLANG, ids)) == ()
    assert hashes(call, policy(), Marks(EngineKind.GENERIC, ids)) == ()
    several: Any = {"text": ["a", "b"], "image_data": [URL, URL]}
    assert SglangGenerate().read(several).hashes_field is None
    assert ids_of(SglangGenerate().read(several)) == ()
    assert OpenAIChat().read(CHAT).hashes_field is None


@pytest.mark.parametrize("marks", [Marks(EngineKind.GENERIC, ("ours",)), Marks(EngineKind.VLLM)])
def test_an_engine_that_nobody_knows_gets_nothing(marks: Marks) -> None:
    call = OpenAIChat().read(CHAT)
    assert written(CHAT, call, marks) == CHAT
