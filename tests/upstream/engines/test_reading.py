"""Foreign documents: numbers where numbers are, nothing where something else is."""

from __future__ import annotations

import pytest

from gateway.upstream.engines.reading import (
    JsonValue,
    Sample,
    fullest,
    inner_object,
    json_object,
    model_cards,
    samples,
    total,
    whole,
    words,
)

EXPOSITION = b"""\
vllm:num_requests_running{engine="0",model_name="a{b}c"} 3.0
# HELP vllm:num_requests_running Number of requests.
vllm:num_requests_running{engine="1",model_name="m"} 2
vllm:num_requests_running_total{engine="1"} 99
vllm:num_requests_running NaN
vllm:plain 7 1700000000
vllm:broken{engine="0" 4
vllm:use{engine="0"} 0.25
vllm:use{engine="1"} 1.5
vllm:words six
"""


def test_samples_are_of_exactly_this_name() -> None:
    assert list(samples(EXPOSITION, "vllm:num_requests_running"))[:2] == [
        Sample({"engine": "0", "model_name": "a{b}c"}, 3.0),
        Sample({"engine": "1", "model_name": "m"}, 2.0),
    ]
    assert [sample.value for sample in samples(EXPOSITION, "vllm:plain")] == [7.0]
    assert list(samples(EXPOSITION, "vllm:broken")) == []
    assert list(samples(EXPOSITION, "vllm:words")) == []
    assert list(samples(b"", "vllm:plain")) == []


def test_ranks_are_added_and_the_fullest_counts() -> None:
    assert total(EXPOSITION, "vllm:num_requests_running") == 5
    assert total(EXPOSITION, "vllm:old_name", "vllm:plain") == 7
    assert total(EXPOSITION, "vllm:gone") is None
    assert fullest(EXPOSITION, "vllm:use") == 1.0
    assert fullest(EXPOSITION, "vllm:gone") is None


@pytest.mark.parametrize("document", [None, b"", b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_an_empty_one(document: bytes | None) -> None:
    assert json_object(document) == {}
    assert model_cards(document) == []


def test_objects_may_be_printed_as_strings() -> None:
    assert inner_object({"a": 1}) == {"a": 1}
    assert inner_object('{"a": 1}') == {"a": 1}
    assert inner_object("none") == {}
    assert inner_object(None) == {}


@pytest.mark.parametrize("value", [True, 0, -1, 1.5, "7", None, []])
def test_only_positive_whole_numbers_count(value: JsonValue) -> None:
    assert whole(value) is None


def test_numbers_and_words() -> None:
    assert whole(7) == 7
    assert words("a") == "a"
    assert words("") is None
    assert words(1) is None


def test_model_cards_are_objects() -> None:
    assert model_cards(b'{"data":[{"id":"a"},7]}') == [{"id": "a"}]
    assert model_cards(b'{"data":{"id":"a"}}') == []


def test_a_sum_beyond_all_numbers_is_none() -> None:
    assert total(b'a{b="1"} 1e308\na{b="2"} 1e308\n', "a") is None
