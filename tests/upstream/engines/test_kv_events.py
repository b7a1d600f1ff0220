"""Where KV events are published, as announced and as reached."""

from __future__ import annotations

import pytest

from gateway.types import KvEventSource
from gateway.upstream.engines.kv_events import of_sglang, of_vllm, reached
from gateway.upstream.engines.reading import JsonValue

RANK: dict[str, JsonValue] = {
    "enable_kv_cache_events": True, "publisher": "zmq", "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5558",
    "buffer_steps": 10000, "hwm": 100000, "max_queue_size": 100000, "topic": "kv",
}  # fmt: skip


def test_vllm_by_rank_and_only_what_is_published() -> None:
    quiet = RANK | {"enable_kv_cache_events": False}
    moved = RANK | {"endpoint": "tcp://*:5559", "replay_endpoint": None}
    assert of_vllm({"0": RANK, "1": moved, "2": quiet, "3": RANK | {"publisher": "null"}, "x": RANK}) == (
        KvEventSource(0, "tcp://*:5557", "tcp://*:5558", "kv"),
        KvEventSource(1, "tcp://*:5559", None, "kv"),
    )
    assert of_vllm({}) == of_vllm({"0": None}) == of_vllm({"0": RANK | {"endpoint": 7}}) == ()


def test_vllm_connects_where_the_address_is_somebody_elses() -> None:
    (source,) = of_vllm({"0": RANK | {"endpoint": "tcp://gateway:5557"}})
    assert not source.listens
    assert reached([source], "10.0.0.7") == (
        KvEventSource(0, "tcp://gateway:5557", "tcp://10.0.0.7:5558", "kv", listens=False),
    )


def test_sglang_adds_the_rank_to_the_port() -> None:
    told: dict[str, JsonValue] = {
        "publisher": "zmq",
        "endpoint_host": "*",
        "endpoint_port_base": 5557,
        "topic": "",
        "block_size": 64,
    }
    assert of_sglang(told) == (KvEventSource(0, "tcp://*:5557"),)
    assert of_sglang(told | {"dp_size": 2, "replay_endpoint_port_base": 6000}) == (
        KvEventSource(0, "tcp://*:5557", "tcp://*:6000"),
        KvEventSource(1, "tcp://*:5558", "tcp://*:6001"),
    )
    assert of_sglang(None) == of_sglang({"publisher": "null"}) == of_sglang({"publisher": "zmq"}) == ()


@pytest.mark.parametrize(
    ("announced", "host", "there"),
    [
        ("tcp://*:5557", "10.0.0.7", "tcp://10.0.0.7:5557"),
        ("tcp://[::]:5557", "fd00::7", "tcp://[fd00::7]:5557"),
        ("tcp://0.0.0.0:5557", "engine", "tcp://engine:5557"),
        ("tcp://10.0.0.9:5557", "engine", "tcp://10.0.0.9:5557"),
        ("ipc:///tmp/events", "engine", "ipc:///tmp/events"),
    ],
)
def test_a_wildcard_is_the_backends_own_host(announced: str, host: str, there: str) -> None:
    assert reached([KvEventSource(0, announced)], host) == (KvEventSource(0, there),)
