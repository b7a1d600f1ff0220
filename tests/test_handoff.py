"""What one engine computes for another: keys that nobody guesses, bodies, and answers that are believed or not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.handoff import (
    Encoding,
    embedded,
    encoder_body,
    encoding_key,
    for_decode,
    for_pair,
    for_prefill,
    read_encoding,
    read_kv_params,
)
from gateway.splice.edit import RemoveMember, SetMember, SetString, SetValue
from gateway.types import ImagePart

KEY = "ab" * 32


def part(index: int) -> ImagePart:
    at = ("messages", 0, "content", index)
    return ImagePart((*at, "image_url", "url"), at, "data:,")


def entry(**more: object) -> dict[str, object]:
    return {"item_indices": [0], "metadata": {"image_grid_thw": [1, 2, 2]}, **more}


def answer(entries: object) -> bytes:
    return json.dumps({"choices": [], "ec_transfer_params": entries}).encode()


def test_a_key_is_of_one_picture_and_detail() -> None:
    keys = [encoding_key("ab", None), encoding_key("ac", None), encoding_key("ab", "low"), encoding_key("ab", "None ")]
    assert len(set(keys)) == len(keys)
    # The connector joins it into a path.
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in keys)


@given(model=st.none() | st.text(), detail=st.none() | st.text(), source=st.text())
def test_an_encoder_s_body_is_one_picture(model: str | None, detail: str | None, source: str) -> None:
    body = json.loads(b"".join(encoder_body(model, [json.dumps(source).encode()], KEY, detail)))
    (message,) = body["messages"]
    ((picture,),) = (message["content"],)
    assert (body.get("model"), body["max_tokens"], picture["uuid"]) == (model, 1, KEY)
    assert picture["image_url"] == {"url": source} | ({} if detail is None else {"detail": detail})


def test_an_encoding_is_believed_under_our_key_only() -> None:
    found = read_encoding(answer({KEY: entry(peer_host="a")}), KEY, None)
    assert found is not None
    assert (found.entry["peer_host"], found.metadata) == ("a", {"image_grid_thw": [1, 2, 2]})
    assert read_encoding(answer({KEY[:-1]: entry()}), KEY, found) is None
    shapes: list[object] = [{}, None, []]
    for metadata in shapes:
        assert read_encoding(answer({KEY: entry(metadata=metadata)}), KEY, None) is None
        known = read_encoding(answer({KEY: entry(metadata=metadata)}), KEY, found)
        assert known is not None
        assert known.metadata == found.metadata


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"null", b"{", answer(None), answer([]), answer({KEY: 1})])
def test_an_answer_of_another_shape_confirms_nothing(body: bytes) -> None:
    assert read_encoding(body, KEY, Encoding(KEY, entry())) is None
    assert read_kv_params(body) is None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_whatever_an_encoder_answers_is_read(value: object) -> None:
    read_encoding(json.dumps({"ec_transfer_params": {KEY: value}}).encode(), KEY, None)
    read_kv_params(json.dumps({"kv_transfer_params": value}).encode())


def test_encodings_stand_where_the_pictures_stood() -> None:
    first, second = Encoding(KEY, entry(peer_port=1)), Encoding("cd" * 32, entry())
    inside = SetString(part(0).pointer, b"data:")
    member = SetMember(part(1).part, "type", b'"image_url"')
    outside = SetMember((), "model", b'"m"')
    operations = embedded([inside, member, outside], [(part(0), first), (part(1), second), (part(2), first)])
    assert operations[0] is outside
    values = [operation for operation in operations if isinstance(operation, SetValue)]
    assert [operation.pointer for operation in values] == [part(index).part for index in range(3)]
    last = operations[-1]
    assert isinstance(last, SetMember)
    told = json.loads(last.value)
    assert told[KEY] == {**entry(peer_port=1), "item_indices": [0, 2]}
    assert told["cd" * 32]["item_indices"] == [1]
    assert first.entry["item_indices"] == [0]  # what is remembered stays as it was


def test_the_legs_of_a_prompt() -> None:
    first = for_prefill([], {"max_tokens": 5})
    members = {operation.key: operation.value for operation in first if isinstance(operation, SetMember)}
    assert members.keys() == {"max_tokens", "stream", "kv_transfer_params"}
    assert json.loads(members["kv_transfer_params"])["do_remote_decode"] is True
    assert RemoveMember((), "min_tokens") in first
    params = read_kv_params(b'{"kv_transfer_params":{"remote_block_ids":[1]}}')
    assert params is not None
    assert for_decode([], params) == [SetMember((), "kv_transfer_params", b'{"remote_block_ids":[1]}')]
    pair = for_pair([], "10.0.0.1", 8998, 7)
    assert [operation.key for operation in pair if isinstance(operation, SetMember)] == [
        "bootstrap_host", "bootstrap_port", "bootstrap_room",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [b"NaN", b"-Infinity", b'{"a":' * 960 + b"1" + b"}" * 960, b"[" * 70 + b"]" * 70])
def test_what_a_helper_says_and_nobody_could_be_told_counts_for_nothing(value: bytes) -> None:
    """An encoder that talks rubbish costs its request nothing but the time: the pictures go themselves."""
    said = b'{"ec_transfer_params":{"k":{"metadata":{"a":' + value + b'}}},"kv_transfer_params":{"a":' + value + b"}}"
    assert read_encoding(said, "k", None) is None
    assert read_kv_params(said) is None
