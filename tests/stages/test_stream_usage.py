"""Usage that only the gateway asked for leaves no trace in the answer, however the stream is cut."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects import dialect_of
from gateway.journey import travel
from gateway.policy.effective import Mode, StreamUsage
from gateway.stages.stream_usage import UsageStripper, stripper_for, with_usage
from gateway.types import Call
from tests.journey.driver import drive
from tests.journey.fakes import STREAM_TYPE, Answer
from tests.journey.scenes import Setting, body
from tests.policy.examples import BUILTIN, policy_set

SETTLE = replace(BUILTIN, stream_usage=StreamUsage.SETTLE)
PIECE = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"say \\"usage\\""}}],"usage":null}\n\n'
COMMENT = b": ping\n\n"
USAGE = b'data: {"id":"1","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":5}}\n\n'
DONE = b"data: [DONE]\n\n"
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "stream": True}


def asked(tree: dict[str, Any], path: str = "/v1/chat/completions", policy: Any = SETTLE) -> Call:
    dialect = dialect_of(path)
    assert dialect is not None
    return with_usage(policy, dialect.name, dialect.read(tree), tree)


def stripped(stream: bytes, cuts: tuple[int, ...] = ()) -> bytes:
    stripper, out, start = UsageStripper(), b"", 0
    for cut in (*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)):
        out += stripper.feed(stream[start:cut])
        start = cut
    return out + stripper.finish()


def test_a_stream_is_asked_about() -> None:
    assert asked(CHAT).additions == (((), "stream_options", b'{"include_usage":true}'),)
    there = asked(CHAT | {"stream_options": {"include_usage": False}})
    assert there.additions == ((("stream_options",), "include_usage", b"true"),)
    assert asked({"prompt": "a", "stream": True}, "/v1/completions").hides_usage


@pytest.mark.parametrize(
    "tree",
    [
        CHAT | {"stream": False},
        CHAT | {"stream_options": {"include_usage": True}},
        CHAT | {"stream_options": {"continuous_usage_stats": True}},
        CHAT | {"stream_options": "odd"},
    ],
)
def test_who_asked_or_would_be_told_otherwise_is_left_alone(tree: dict[str, Any]) -> None:
    assert not asked(tree).hides_usage
    assert asked(tree).additions == ()


def test_only_a_policy_asks_and_only_where_it_is_in_force() -> None:
    assert not asked(CHAT, policy=BUILTIN).hides_usage
    assert not asked(CHAT, policy=replace(SETTLE, mode=Mode.SHADOW)).hides_usage
    assert not asked({"input": "a", "stream": True}, "/v1/responses").hides_usage


@given(st.lists(st.integers(0, 10_000), max_size=6).map(tuple), st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]))
def test_the_event_goes_and_every_other_byte_stays(cuts: tuple[int, ...], end: bytes) -> None:
    events = [each.replace(b"\n\n", end) for each in (PIECE, COMMENT, PIECE, USAGE, COMMENT, DONE)]
    expected = b"".join(event for number, event in enumerate(events) if number != 3)
    assert stripped(b"".join(events), cuts) == expected


@pytest.mark.parametrize("odd", [b"data: {", b'data: {"usage":1}\n\n', b"no event", b'data: "usage"\n\n', b""])
def test_what_cannot_be_read_goes_on(odd: bytes) -> None:
    assert stripped(odd) == odd


def test_comments_inside_the_event_stay() -> None:
    assert stripped(b": beat\n" + USAGE) == b": beat\n\n"


def test_only_plain_event_streams_are_read() -> None:
    call = asked(CHAT)
    assert stripper_for(call, 200, [STREAM_TYPE]) is not None
    assert stripper_for(call, 400, [STREAM_TYPE]) is None
    assert stripper_for(call, 200, [STREAM_TYPE, ("Content-Encoding", "gzip")]) is None
    assert stripper_for(call, 200, [("Content-Type", "application/json")]) is None
    assert stripper_for(asked(CHAT, policy=BUILTIN), 200, [STREAM_TYPE]) is None


def test_a_journey_settles_by_it_and_the_client_sees_nothing() -> None:
    policies = policy_set(default="stream_usage: settle\n")
    setting = Setting(body(stream=True), (Answer(headers=(STREAM_TYPE,), pieces=(PIECE, USAGE, DONE)),),
                      policies=policies)  # fmt: skip
    scene = setting.scene()
    dialect = dialect_of("/v1/chat/completions")
    assert dialect is not None
    assert drive(travel(scene.client, dialect, scene.ports, setting.world())).escaped is None
    assert scene.client.written == PIECE + DONE
    assert scene.record.usage is not None
    assert scene.record.usage.prompt_tokens == 30
    assert json.loads(scene.upstream.sent[0][2])["stream_options"] == {"include_usage": True}
