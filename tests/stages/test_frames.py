"""Frames and pages as images of their own: which, in the call, in the tree, in the body."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects import Dialect
from gateway.dialects.anthropic_messages import AnthropicMessages
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.openai_responses import OpenAIResponses
from gateway.errors import Undecodable
from gateway.policy.dropping import oldest_beyond
from gateway.policy.effective import Mode, Selection, Several
from gateway.record import ExchangeRecord
from gateway.splice.edit import edit, splice
from gateway.splice.skeleton import cut
from gateway.stages.frames import as_engine_sees, sampled, spread
from gateway.stages.identities import Marks
from gateway.stages.omission import leave_out
from gateway.stages.outgoing import edits_of
from gateway.types import (
    ContentDigest,
    EngineKind,
    ImageFormat,
    Page,
    PlacementDigest,
    Prepared,
    Probe,
    RequestId,
    Size,
    SourceFacts,
)
from tests.policy.examples import call, part, policy

SAMPLE = policy(animated=Selection(Several.MANY, 3, "sample"))
ALL = policy(pages=Selection(Several.MANY, 3, "all"))
GIF = Probe(ImageFormat.GIF, Size(40, 20), frames=9)
PAGES = (Page(Size(40, 20)), Page(Size(20, 40), 6), Page(Size(9, 9)))
TIFF = Probe(ImageFormat.TIFF, Size(40, 20), frames=3, pages=PAGES)
STILL = Probe(ImageFormat.PNG, Size(8, 8))


def facts(probe: Probe) -> SourceFacts:
    return SourceFacts(10, PlacementDigest(b"p"), ContentDigest(b"c"), probe, canonical=True)


def test_frames_are_sampled_evenly_with_both_ends() -> None:
    assert sampled(9, 3) == [0, 4, 8]
    assert sampled(10, 4) == [0, 3, 6, 9]
    assert sampled(2, 4) == [0, 1]


@given(st.integers(2, 10_000), st.integers(2, 16))
def test_sampled_frames_are_different_and_exist(frames: int, count: int) -> None:
    chosen = sampled(frames, count)
    assert len(chosen) == len(set(chosen)) == min(frames, count)
    assert (chosen[0], chosen[-1]) == (0, frames - 1)


def test_each_frame_is_an_image_of_its_own() -> None:
    images, found = spread(SAMPLE, call(part(0), part(1)), [facts(GIF), facts(STILL)])
    assert [(image.part[-1], image.frame) for image in images.images] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert [fact.frame for fact in found] == [0, 4, 8, 0]
    assert found[1].probe == GIF


def test_each_page_has_its_own_size_and_orientation() -> None:
    images, found = spread(ALL, call(part()), [facts(TIFF)])
    assert [fact.frame for fact in found] == [0, 1, 2]
    assert [fact.probe.upright for fact in found] == [Size(40, 20), Size(40, 20), Size(9, 9)]
    assert {fact.probe.frames for fact in found} == {3}
    assert len(images.images) == 3


def test_pages_beyond_the_limit_are_left_to_the_check() -> None:
    _, found = spread(policy(pages=Selection(Several.MANY, 2, "all")), call(part()), [facts(TIFF)])
    assert len(found) == 2


def test_a_page_that_could_not_be_read_is_named() -> None:
    with pytest.raises(Undecodable, match="Page 3 of the document is damaged"):
        spread(ALL, call(part()), [facts(replace(TIFF, pages=PAGES[:2]))])


@pytest.mark.parametrize(
    ("rules", "probe"),
    [
        (policy(), GIF),
        (SAMPLE, TIFF),
        (ALL, GIF),
        (SAMPLE, STILL),
        (SAMPLE, replace(GIF, format=ImageFormat.AVIF)),
        (replace(SAMPLE, mode=Mode.SHADOW), GIF),
    ],
)
def test_otherwise_an_image_is_one_image(rules: Any, probe: Probe) -> None:
    images, found = spread(rules, call(part()), [facts(probe)])
    assert (len(images.images), list(found)) == (1, [facts(probe)])


def test_what_stands_in_no_list_stays_its_first_frame() -> None:
    alone = replace(part(), part=("input", 0, "output"))
    assert len(spread(SAMPLE, call(alone), [facts(GIF)])[1]) == 1


URL = "data:image/gif;base64,AAAA"
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AAAA"}}
TEXT = {"type": "text", "text": "x"}
BODIES: list[tuple[Dialect, dict[str, Any], Any]] = [
    (
        OpenAIChat(),
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}, TEXT]}]},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,Mg=="}},
    ),
    (
        OpenAIResponses(),
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": URL}, TEXT]}]},
        {"type": "input_image", "image_url": "data:image/png;base64,Mg=="},
    ),
    (
        AnthropicMessages(),
        {"messages": [{"role": "user", "content": [BLOCK, TEXT]}]},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "Mg=="}},
    ),
]


@pytest.mark.parametrize(("dialect", "body", "third"), BODIES, ids=["chat", "responses", "messages"])
def test_further_frames_stand_behind_the_first_in_its_form(dialect: Dialect, body: dict[str, Any], third: Any) -> None:
    raw = json.dumps({"model": "m", **body}).encode()
    skeleton = cut(raw, 0, len(raw))
    asked, found = spread(SAMPLE, dialect.read(skeleton.tree), [facts(GIF)])
    made = [
        (image, Prepared(f"data:image/png;base64,{data}".encode(), Size(4, 4), ImageFormat.PNG, 1))
        for image, data in zip(asked.images, ("MA==", "MQ==", "Mg=="), strict=True)
    ]
    exchange = ExchangeRecord(RequestId("r"), dialect.name, "/", 0.0)
    operations = edits_of(asked, SAMPLE, Marks(EngineKind.VLLM), made, lambda *_: "", exchange)
    spliced = splice(lambda start, stop: memoryview(raw)[start:stop], 0, len(raw), edit(skeleton, operations))
    sent = json.loads(b"".join(spliced.chunks))
    content = (sent.get("messages") or sent["input"])[0]["content"]
    assert [each["type"] for each in content] == [third["type"]] * 3 + ["text"]
    assert content[2] == third
    assert len(found) == 3
    # What a tokenizer is given has the same parts, and the tree that edits are made by still has its own places.
    seen: Any = as_engine_sees(skeleton.tree, asked.images)
    assert len((seen.get("messages") or seen["input"])[0]["content"]) == 4
    assert len(dialect.read(skeleton.tree).images) == 1


def test_a_tree_without_frames_is_the_same_tree() -> None:
    tree: dict[str, Any] = {"messages": []}
    assert as_engine_sees(tree, call(part()).images) is tree


def test_a_source_is_left_out_as_a_whole() -> None:
    asked, _ = spread(SAMPLE, call(part(0), part(1)), [facts(GIF), facts(STILL)])
    dropped = oldest_beyond(asked.images, [1] * 4, 3)
    assert dropped == (0, 1, 2)
    assert oldest_beyond(asked.images, [1] * 4, 4) == ()
    assert oldest_beyond(asked.images[:3], [1] * 3, 1) == ()
    tree: Any = {"messages": [{"content": [{}, {}]}]}
    left = leave_out(asked, dropped, tree)
    assert (len(left.images), len(left.omitted)) == (1, 1)
