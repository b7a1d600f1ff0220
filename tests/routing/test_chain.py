"""The chain: what begins alike has links in common, and nothing else has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.chain import Chain, Medium, chain_of
from gateway.routing.hashing import spread
from gateway.splice.skeleton import cut

IMAGE = "https://example.com/a.png"


def chain(messages: Any, *, seed: int = 0, text_tokens: int = 1000, image: Medium | None = None, **more: Any) -> Chain:
    data = json.dumps({"messages": messages} | more).encode()
    tree = cut(data, 0, len(data)).tree
    media = {}
    if image is not None:
        content: Any = tree["messages"]
        media[id(content[-1]["content"][0]["image_url"]["url"])] = image
    return chain_of(tree, "messages", lambda start, stop: memoryview(data)[start:stop], media, text_tokens, seed)


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


TEXTS = st.text(max_size=200).map(lambda text: text * 12)
TALKS = st.lists(st.builds(said, TEXTS, st.sampled_from(["system", "user", "assistant"])), min_size=1, max_size=6)


@given(TALKS, st.lists(st.builds(said, TEXTS), min_size=1, max_size=3))
def test_what_is_appended_changes_no_link_before(talk: list[Any], more: list[Any]) -> None:
    before, after = chain(talk), chain([*talk, *more])
    assert after.links[: len(before.links)] == before.links
    assert list(after.tokens) == sorted(after.tokens)
    assert len(after.links) == len(after.tokens)
    if any(message["role"] == "user" for message in talk):
        assert after.home == before.home


@given(TALKS, TALKS)
def test_what_differs_has_no_later_link_in_common(one: list[Any], other: list[Any]) -> None:
    if one[0] != other[0]:
        padded = chain([one[0] | {"content": "x" + one[0]["content"]}, said("y" * 2000)])
        plain = chain([one[0], said("y" * 2000)])
        assert not set(padded.links) & set(plain.links)


def test_long_texts_have_links_inside_ever_further_apart() -> None:
    shared = "one and the same long document " * 3000
    one, other = chain([said(shared + "what?")]), chain([said(shared + "why?")])
    common = [
        tokens for mine, theirs, tokens in zip(one.links, other.links, one.tokens, strict=False) if mine == theirs
    ]
    assert common[-1] >= 850
    assert len(one.links) <= 50


def test_another_tenant_or_tools_are_another_chain() -> None:
    talk = [said("hello " * 200)]
    assert not set(chain(talk).links) & set(chain(talk, seed=1).links)
    assert not set(chain(talk).links) & set(chain(talk, tools=[{"type": "function"}]).links)


def test_an_image_is_a_link_by_its_digest_and_the_home_of_what_begins_with_it() -> None:
    part = {"type": "image_url", "image_url": {"url": IMAGE}}
    talk = [{"role": "user", "content": [part, {"type": "text", "text": "what?"}]}]
    one, other = (chain(talk, image=Medium(digest, 700, digest), text_tokens=10) for digest in (b"1" * 16, b"2" * 16))
    assert not set(one.links) & set(other.links)
    assert one.home == spread(b"1" * 16)
    assert any(700 <= tokens <= 710 for tokens in one.tokens)
    assert [(digest, 700 <= end <= 710) for digest, end in one.ends] == [(b"1" * 16, True)]


def test_what_comes_later_is_no_home() -> None:
    part = {"type": "image_url", "image_url": {"url": IMAGE}}
    first = said("look at this")
    later = chain([first, {"role": "user", "content": [part]}], image=Medium(b"1" * 16, 700, b"1" * 16))
    assert later.home == chain([first]).home


@pytest.mark.parametrize("content", [None, 7, True, [], {}, [[[None]]], "data:image/png;base64," + "A" * 50_000])
def test_nothing_that_a_client_writes_breaks_it(content: Any) -> None:
    assert chain([{"role": "user", "content": content}]).home is not None
    assert chain(content).links == chain(content).links


def test_depth_is_bounded() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    assert chain(deep).home is not None
