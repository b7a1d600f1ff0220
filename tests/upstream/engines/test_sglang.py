"""SGLang's documents and refusals, as the sources of 0.5.23 write them."""

from __future__ import annotations

import json

from gateway.types import EngineKind, KvEventSource
from gateway.upstream.engines import recognise
from gateway.upstream.engines.contract import EngineFacts, EngineLoad
from gateway.upstream.engines.sglang import Sglang

MODELS = b'{"data":[{"id":"qwen","owned_by":"sglang","root":"/m","max_model_len":32768}]}'
SERVER = json.dumps(
    {
        "version": "0.5.23",
        "context_length": None,
        "max_total_num_tokens": 200_000,
        "page_size": 64,
        "limit_mm_data_per_request": '{"image": 4}',
        "mm_process_config": {"image": {"max_pixels": 1_003_520}},
        "chunked_prefill_size": 8192,
        "tokenizer_worker_num": 1,
        "dp_size": 1,
        "kv_events": {"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": 5557, "topic": ""},
    }
).encode()
MODEL = b'{"model_path":"/models/qwen","is_generation":true,"has_image_understanding":true}'
ENGINE = Sglang()


def test_facts() -> None:
    documents = {"/v1/models": MODELS, "/server_info": SERVER, "/model_info": MODEL}
    assert recognise(documents).kind is EngineKind.SGLANG
    assert ENGINE.facts(documents) == EngineFacts(
        version="0.5.23",
        models=("qwen",),
        model_root="/models/qwen",
        context_tokens=32768,
        kv_capacity_tokens=200_000,
        kv_block_tokens=64,
        max_pixels=1_003_520,
        max_images=4,
        vision=True,
        prefill_chunk_tokens=8192,
        api_servers=1,
        ranks=1,
        kv_event_sources=(KvEventSource(0, "tcp://*:5557"),),
    )


def test_either_document_tells() -> None:
    assert recognise({"/model_info": MODEL}).kind is EngineKind.SGLANG
    assert recognise({"/v1/models": MODELS}).kind is EngineKind.SGLANG
    assert ENGINE.facts({}) == EngineFacts()


def test_its_generating_health_is_never_the_probe_but_wakes_it() -> None:
    assert "/health" not in ENGINE.health_paths
    assert ENGINE.waking_path == "/health"


def test_load_of_all_ranks() -> None:
    document = json.dumps(
        {
            "loads": [
                {"num_running_reqs": 3, "num_waiting_reqs": 0, "num_waiting_uncached_tokens": 0, "token_usage": 0.2},
                {"num_running_reqs": 1, "num_waiting_reqs": 2, "num_waiting_uncached_tokens": 700, "token_usage": 0.7},
            ]
        }
    ).encode()
    assert ENGINE.load(ENGINE.load_paths[0], document) == EngineLoad(
        running=4, waiting=2, kv_use_ratio=0.7, waiting_tokens=700
    )
    assert ENGINE.load(ENGINE.load_paths[0], b"{}") == EngineLoad()
    metrics = b'sglang:num_running_reqs{a="b"} 4.0\nsglang:num_queue_reqs 2\nsglang:token_usage 0.5\n'
    assert ENGINE.load("/metrics", metrics) == EngineLoad(running=4, waiting=2, kv_use_ratio=0.5)


def test_a_full_queue_is_a_refusal() -> None:
    body = b'{"object":"error","message":"The request queue is full.","type":"503","param":null,"code":503}'
    assert ENGINE.refusal(503, body) == "refused"
    assert ENGINE.refusal(500, body) is None
    assert ENGINE.refusal(503, b"retracted") is None
