"""vLLM's documents and refusals, as version 0.32.0 writes them."""

from __future__ import annotations

import json

import pytest

from gateway.types import EngineKind, KvEventSource
from gateway.upstream.engines import recognise
from gateway.upstream.engines.contract import EngineFacts, EngineLoad
from gateway.upstream.engines.vllm import Vllm

MODELS = (
    b'{"object":"list","data":[{"id":"qwen","object":"model","owned_by":"vllm","root":"/models/qwen",'
    b'"max_model_len":20480},{"id":"lora","owned_by":"vllm","root":"/l","parent":"qwen","max_model_len":null}]}'
)
METRICS = (
    b'vllm:num_requests_running{engine="0",model_name="qwen"} 3.0\n'
    b'vllm:num_requests_waiting{engine="0",model_name="qwen"} 2.0\n'
    b'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0\n'
    b'vllm:kv_cache_usage_perc{engine="0",model_name="qwen"} 0.5\n'
    b'vllm:cache_config_info{block_size="128",engine="0",num_gpu_blocks="8192",kv_cache_size_tokens="1048576"} 1.0\n'
)
ENGINE = Vllm()


def test_facts() -> None:
    documents = {"/v1/models": MODELS, "/version": b'{"version":"0.32.0"}', "/metrics": METRICS}
    assert recognise(documents).kind is EngineKind.VLLM
    assert ENGINE.facts(documents) == EngineFacts(
        version="0.32.0",
        models=("qwen", "lora"),
        model_root="/models/qwen",
        context_tokens=20480,
        kv_capacity_tokens=1_048_576,
        kv_block_tokens=128,
        ranks=1,
        api_servers=2,
    )


def test_facts_of_a_server_that_tells_all() -> None:
    server = {
        "vllm_config": {"scheduler_config": {"encoder_cache_size": 4096}, "parallel_config": {"_api_process_count": 4}}
    }
    events = {"0": {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": "tcp://*:5557"}}
    facts = ENGINE.facts({
        "/server_info?config_format=json": json.dumps(server).encode(),
        "/kv_event_sources": json.dumps(events).encode(),
        "/metrics": METRICS,
    })  # fmt: skip
    assert (facts.encoder_cache_tokens, facts.api_servers) == (4096, 4)
    assert facts.kv_event_sources == (KvEventSource(0, "tcp://*:5557"),)


def test_either_document_tells() -> None:
    assert recognise({"/version": b'{"version":"0.32.0"}'}).kind is EngineKind.VLLM
    assert recognise({"/v1/models": MODELS}).kind is EngineKind.VLLM
    assert ENGINE.facts({}) == EngineFacts()


def test_older_versions_count_blocks_and_ranks_are_added() -> None:
    metrics = b"".join(
        b'vllm:cache_config_info{block_size="16",engine="%d",num_gpu_blocks="1000"} 1.0\n' % rank for rank in (0, 1)
    )
    facts = ENGINE.facts({"/metrics": metrics})
    assert (facts.kv_capacity_tokens, facts.kv_block_tokens) == (32_000, 16)
    unknown = ENGINE.facts({"/metrics": b'vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0\n'})
    assert unknown.kv_capacity_tokens is None


def test_load() -> None:
    assert ENGINE.load("/metrics", METRICS) == EngineLoad(running=3, waiting=2, kv_use_ratio=0.5)
    old = b"vllm:gpu_cache_usage_perc 0.75\n"
    assert ENGINE.load("/metrics", old) == EngineLoad(kv_use_ratio=0.75)


@pytest.mark.parametrize(
    ("status", "text", "reason"),
    [
        (503, b"The engine is currently busy and cannot accept new requests. Please try again later", "refused"),
        (503, b"The engine has reached its prefill token backlog limit. ...", "refused"),
        (500, b"cannot schedule new futures after shutdown", "draining"),
        (500, b"The engine is currently busy and cannot accept new requests.", None),
        (503, b"cannot schedule new futures after shutdown", None),
        (503, b"EngineCore encountered an issue.", None),
    ],
)
def test_refusals(status: int, text: bytes, reason: str | None) -> None:
    assert ENGINE.refusal(status, b'{"error":{"message":"' + text + b'"}}') == reason


@pytest.mark.parametrize(
    ("header", "load"),
    [
        (
            'JSON {"named_metrics": {"num_requests_waiting": 2.0, "kv_cache_usage_perc": 0.25}}',
            EngineLoad(waiting=2, kv_use_ratio=0.25),
        ),
        ("TEXT named_metrics.num_requests_waiting=2.0", None),
        ('JSON {"named_metrics": {"num_requests_waiting": -1, "kv_cache_usage_perc": 0.25}}', None),
        ('JSON {"named_metrics": {"num_requests_waiting": true, "kv_cache_usage_perc": Infinity}}', None),
        ("JSON [", None),
        ("", None),
    ],
)
def test_load_reports(header: str, load: EngineLoad | None) -> None:
    assert ENGINE.report(header) == load
